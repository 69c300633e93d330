#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "hearth/caffe/tensor/compute_device.h"

namespace hearth::caffe {

// A flat float32 array of which the host and a device may each have a copy, like Caffe's
// SyncedMemory. A copy is updated when it is requested. If the device is the CPU, there is only one
// copy. Several blobs of one net may share the array. Must be used by one thread.
class SyncedArray {
 public:
  // An array of `count` zeros, allocated on first use.
  SyncedArray(int64_t count, const ComputeDevice& device) : count_(count), device_(device) {}
  // An array whose memory `take` allocates on first use. `take` returns the host's tensor, and the
  // device's tensor if the device has separate memory.
  using Take = std::function<std::pair<Tensor, Tensor>()>;
  SyncedArray(int64_t count, const ComputeDevice& device, Take take)
      : count_(count), device_(device), take_(std::move(take)) {}
  // An array in the caller's memory. `device` is undefined if the device has no separate memory;
  // otherwise its values are stale.
  SyncedArray(Tensor host, Tensor device);

  int64_t count() const { return count_; }
  // For reading and writing: the other copy becomes stale.
  const Tensor& host();
  const Tensor& device();
  // For reading only: the other copy stays valid.
  const Tensor& host_to_read();
  const Tensor& device_to_read();

  // Uses `values`, which must be count() values on the device, as the device's copy, without
  // copying.
  void Adopt(Tensor values);

  // Sets all values to zero. The memory is written when a copy is next requested.
  void SetZero() { is_zero_ = true; }
  bool is_zero() const { return is_zero_; }
  // Like device(), but the caller must write every value, because after SetZero() the memory may be
  // uninitialized.
  const Tensor& device_to_overwrite();

 private:
  const Tensor& FromDevice();
  const Tensor& FromHost();
  void FillZero();
  void TakeMemory();

  int64_t count_;
  ComputeDevice device_;
  Take take_;  // empty after the call
  Tensor host_, remote_;
  bool host_is_new_ = true, remote_is_new_ = false;
  bool is_zero_ = false;  // true if set to zero, but the memory is not yet written
};

inline const Tensor& SyncedArray::host() {
  if (is_zero_) FillZero();
  if (device_.separate) {
    FromDevice();
    remote_is_new_ = false;
  }
  return host_.defined() ? host_ : FromDevice();
}

}  // namespace hearth::caffe
