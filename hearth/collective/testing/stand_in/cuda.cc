// Stands in for the CUDA driver in tests: streams are threads, and device memory is host memory at
// addresses that are invalid on the host.
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "hearth/collective/device/cuda_api.h"
#include "hearth/collective/testing/stand_in/stand_in.h"

namespace {

using hearth::collective::cuda::kNotReady;
using hearth::collective::cuda::kSuccess;

constexpr uintptr_t kDeviceBit = uintptr_t{1} << 62;
constexpr int kInvalidValue = 1;
constexpr int kDevices = 8;

thread_local void* current = nullptr;
std::atomic<int> streams{0};

class Stream {
 public:
  Stream() : thread_([this] { Loop(); }) { ++streams; }
  ~Stream() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
    --streams;
  }

  void Give(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      work_.push_back(std::move(work));
      ++given_;
    }
    changed_.notify_all();
  }

  bool idle() {
    const std::lock_guard lock(mutex_);
    return given_ == done_;
  }

 private:
  void Loop() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return ending_ || !work_.empty(); });
      if (work_.empty()) return;
      const std::function<void()> work = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      work();
      lock.lock();
      ++done_;
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  uint64_t given_ = 0, done_ = 0;
  bool ending_ = false;
  std::thread thread_;
};

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t recorded = 0, reached = 0;
};
struct Event {
  std::shared_ptr<State> state = std::make_shared<State>();
};

}  // namespace

extern "C" {

int cuInit(unsigned) { return kSuccess; }
int cuDeviceGet(int* device, int ordinal) {
  if (ordinal < 0 || ordinal >= kDevices) return kInvalidValue;
  *device = ordinal;
  return kSuccess;
}
int cuDeviceGetPCIBusId(char* text, int size, int device) {
  std::snprintf(text, static_cast<size_t>(size), "0000:%02x:00.0", device);
  return kSuccess;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  static int contexts[kDevices];
  *context = &contexts[device];
  return kSuccess;
}
int cuDevicePrimaryCtxRelease_v2(int) { return kSuccess; }
int cuCtxGetCurrent(void** context) {
  *context = current;
  return kSuccess;
}
int cuCtxSetCurrent(void* context) {
  current = context;
  return kSuccess;
}
int cuStreamCreate(void** stream, unsigned) {
  if (current == nullptr) return kInvalidValue;
  *stream = new Stream;
  return kSuccess;
}
// Like CUDA's function, returns at once; the stream is destroyed once its work is done.
int cuStreamDestroy_v2(void* stream) {
  std::thread([stream] { delete static_cast<Stream*>(stream); }).detach();
  return kSuccess;
}
int cuStreamQuery(void* stream) {
  return static_cast<Stream*>(stream)->idle() ? kSuccess : kNotReady;
}
int cuEventCreate(void** event, unsigned) {
  *event = new Event;
  return kSuccess;
}
int cuEventDestroy_v2(void* event) {
  delete static_cast<Event*>(event);
  return kSuccess;
}
int cuEventRecord(void* event, void* stream) {
  const std::shared_ptr<State> state = static_cast<Event*>(event)->state;
  uint64_t number = 0;
  {
    const std::lock_guard lock(state->mutex);
    number = ++state->recorded;
  }
  const auto reach = [state, number] {
    {
      const std::lock_guard lock(state->mutex);
      state->reached = number;
    }
    state->changed.notify_all();
  };
  if (stream == nullptr) {
    reach();  // the default stream never has pending work
  } else {
    static_cast<Stream*>(stream)->Give(reach);
  }
  return kSuccess;
}
int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  const std::shared_ptr<State> state = static_cast<Event*>(event)->state;
  uint64_t number = 0;
  {
    const std::lock_guard lock(state->mutex);
    number = state->recorded;
  }
  static_cast<Stream*>(stream)->Give([state, number] {
    std::unique_lock lock(state->mutex);
    state->changed.wait(lock, [&] { return state->reached >= number; });
  });
  return kSuccess;
}
int cuLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  static_cast<Stream*>(stream)->Give([=] { function(data); });
  return kSuccess;
}
int cuGetErrorString(int result, const char** text) {
  *text = result == kInvalidValue ? "invalid argument" : nullptr;
  return kSuccess;
}

void* hearth_stand_in_allocate(size_t bytes) {
  void* memory = std::calloc(bytes + 1, 1);
  return static_cast<std::byte*>(memory) + kDeviceBit;
}
void hearth_stand_in_free(void* memory) { std::free(hearth_stand_in_host(memory)); }
// Accepts simulated device memory and ordinary host memory.
void* hearth_stand_in_host(const void* memory) {
  const auto address = reinterpret_cast<uintptr_t>(memory) & ~kDeviceBit;
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): not optimized
}
void hearth_stand_in_launch(void* stream, void (*function)(void*), void* data) {
  cuLaunchHostFunc(stream, function, data);
}
int hearth_stand_in_streams() { return streams.load(); }

}  // extern "C"
