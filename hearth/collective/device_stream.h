// A stream of one CUDA device, on which a group's work runs beside the program's own. One thread at
// a time; its device is that thread's current one while a Use lives. Errors are kUnavailable.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "hearth/base/fd.h"
#include "hearth/collective/cuda_api.h"

namespace hearth::collective {

class DeviceStream {
 public:
  // `device`: its number in this process.
  explicit DeviceStream(int device);
  ~DeviceStream();
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;

  // Gives the thread its own device back when it ends.
  class Use {
   public:
    explicit Use(const DeviceStream& stream);
    ~Use() { api_.set_current(before_); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    const cuda::Api& api_;
    cuda::Context* before_ = nullptr;
  };

  cuda::Stream* get() const { return stream_; }

  // What is given to this stream from now on waits for what `other` has been given so far.
  void WaitFor(cuda::Stream* other);

  // fd() becomes readable once all that was given so far is done.
  void Mark();
  int fd() const { return marks_->event.get(); }
  // Whether what Mark meant is done. Throws where the device has failed: then it never will be.
  bool Done();

 private:
  // Lives until the device has let go of it, which may be after the stream's end.
  struct Marks {
    Fd event;
    std::atomic<uint64_t> reached{0};
  };

  void Destroy();

  const cuda::Api& api_;
  int device_ = 0;
  cuda::Context* context_ = nullptr;
  cuda::Stream* stream_ = nullptr;
  cuda::Event* others_ = nullptr;
  std::shared_ptr<Marks> marks_ = std::make_shared<Marks>();
  uint64_t marked_ = 0;
};

}  // namespace hearth::collective
