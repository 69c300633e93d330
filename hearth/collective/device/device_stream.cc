#include "hearth/collective/device/device_stream.h"

#include <sys/eventfd.h>

#include <cerrno>

#include "hearth/base/error.h"

namespace hearth::collective {

DeviceStream::Use::Use(const DeviceStream& stream) : api_(stream.api_) {
  cuda::Check(api_, api_.get_current(&before_), "get the current device");
  cuda::Check(api_, api_.set_current(stream.context_), "use the device");
}

// Uses the primary context because CUDA's runtime uses it too, so the program's memory is valid in
// it. This stream and the legacy default stream do not wait for each other; WaitFor orders them.
DeviceStream::DeviceStream(int device) : api_(cuda::Library().Get()) {
  marks_->event.Reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!marks_->event.valid()) ThrowErrno(errno, "cannot create an event descriptor");
  cuda::Check(api_, api_.init(0), "start");
  cuda::Check(api_, api_.device_get(&device_, device), "find the device");
  cuda::Check(api_, api_.retain(&context_, device_), "open the device");
  try {
    const Use use(*this);
    cuda::Check(api_, api_.stream_create(&stream_, cuda::kNonBlockingStream), "create a stream");
    cuda::Check(api_, api_.event_create(&others_, cuda::kNoTiming), "create an event");
  } catch (...) {
    Destroy();
    throw;
  }
}

DeviceStream::~DeviceStream() { Destroy(); }

// Ignores errors, because a destructor cannot handle them.
void DeviceStream::Destroy() {
  cuda::Context* before = nullptr;
  api_.get_current(&before);
  api_.set_current(context_);
  if (others_ != nullptr) api_.event_destroy(others_);
  if (stream_ != nullptr) api_.stream_destroy(stream_);
  api_.set_current(before);
  api_.release(device_);
}

void DeviceStream::WaitFor(cuda::Stream* other) {
  cuda::Check(api_, api_.event_record(others_, other), "record an event");
  cuda::Check(api_, api_.stream_wait(stream_, others_, 0), "wait for a stream");
}

void DeviceStream::Mark() {
  struct Reached {
    std::shared_ptr<Marks> marks;
    uint64_t number;
  };
  auto reached = std::make_unique<Reached>(Reached{marks_, ++marked_});
  // Runs in a thread of the driver, where no CUDA function may be called.
  const auto signal = [](void* data) {
    const std::unique_ptr<Reached> own(static_cast<Reached*>(data));
    own->marks->reached.store(own->number, std::memory_order_release);
    ::eventfd_write(own->marks->event.get(), 1);
  };
  cuda::Check(api_, api_.launch_host(stream_, signal, reached.get()), "add a callback to a stream");
  // The callback now owns `reached`, which leaks if the device fails before the callback.
  (void)reached.release();
}

bool DeviceStream::Done() {
  // Clears the descriptor before it reads the number. Otherwise the signal of a mark reached in
  // between would be lost, and a caller that polls the descriptor would sleep for ever.
  eventfd_t count = 0;
  ::eventfd_read(fd(), &count);
  if (marks_->reached.load(std::memory_order_acquire) == marked_) return true;
  // A device that has failed does not call the callback, so only a query reports the failure.
  const cuda::Result result = api_.stream_query(stream_);
  if (result != cuda::kNotReady) cuda::Check(api_, result, "complete its work");
  return false;
}

}  // namespace hearth::collective
