#include "hearth/caffe/tensor/synced_array.h"

#include <tuple>
#include <utility>

namespace hearth::caffe {

SyncedArray::SyncedArray(Tensor host, Tensor device)
    : count_(host.numel()), host_(std::move(host)), remote_(std::move(device)) {
  if (remote_.defined()) device_ = {remote_.device(), true};
}

// take_() returns zeroed memory for the host and the device, so both copies are equal.
void SyncedArray::TakeMemory() {
  if (!take_) return;
  std::tie(host_, remote_) = take_();
  take_ = nullptr;
  remote_is_new_ = remote_.defined();
}

// Returns the host's copy, after copying newer values from the device. It is valid until the
// device's copy is requested for writing.
const Tensor& SyncedArray::FromDevice() {
  TakeMemory();
  if (!host_.defined()) host_ = Tensor::Zeros({count_});
  if (!host_is_new_) host_.copy_(remote_);
  host_is_new_ = true;
  return host_;
}

// Zeros the device's copy. Gradients are accumulated on the device, so nothing is copied. The
// host's copy becomes stale.
void SyncedArray::FillZero() { device_to_overwrite().zero_(); }

const Tensor& SyncedArray::device_to_overwrite() {
  // is_zero_ must be reset before device(), which fills a cleared array with zeros.
  is_zero_ = false;
  // The device's copy becomes new only when the caller writes it. Setting the flag here avoids a
  // copy from the host.
  if (remote_.defined()) remote_is_new_ = true;
  return device();
}

const Tensor& SyncedArray::host_to_read() {
  if (is_zero_) FillZero();
  return device_.separate || !host_.defined() ? FromDevice() : host_;
}

void SyncedArray::Adopt(Tensor values) {
  // TakeMemory() must be first, because memory that is taken later would replace the values.
  TakeMemory();
  remote_ = std::move(values);
  remote_is_new_ = true;
  host_is_new_ = is_zero_ = false;
}

const Tensor& SyncedArray::device() {
  if (!device_.separate) return host();
  if (is_zero_) FillZero();
  FromHost();
  host_is_new_ = false;
  return remote_;
}

const Tensor& SyncedArray::device_to_read() {
  if (!device_.separate) return host_to_read();
  if (is_zero_) FillZero();
  return FromHost();
}

// Returns the device's copy, after copying newer values from the host. Memory that is allocated
// here is zero, so nothing is copied if the host has no memory, either.
const Tensor& SyncedArray::FromHost() {
  TakeMemory();
  if (!remote_.defined()) {
    remote_ = Tensor::ZerosOn(device_.device, {count_});
    remote_is_new_ = !host_.defined();
  }
  if (!remote_is_new_) remote_.copy_(host_);
  remote_is_new_ = true;
  return remote_;
}

}  // namespace hearth::caffe
