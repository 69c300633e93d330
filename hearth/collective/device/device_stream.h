#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "hearth/base/fd.h"
#include "hearth/collective/device/cuda_api.h"

namespace hearth::collective {

// A stream of one CUDA device for a group's operations, separate from the program's streams. Used
// by one thread at a time; the device is current in that thread while a Use exists. Errors are
// kUnavailable.
class DeviceStream {
 public:
  // `device`: its ordinal in this process.
  explicit DeviceStream(int device);
  ~DeviceStream();
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;

  // Makes the device current. The destructor restores the thread's previous device.
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

  // Later work on this stream waits for the work submitted to `other` so far.
  void WaitFor(cuda::Stream* other);

  // After Mark(), fd() becomes readable once all work submitted before Mark() is done.
  void Mark();
  int fd() const { return marks_->event.get(); }
  // Returns true once the work before the last Mark() is done. Throws if the device has failed,
  // because the work then never completes.
  bool Done();

 private:
  // The marks that the stream has reached. Shared with the device's callback, which may run after
  // the stream is destroyed.
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
