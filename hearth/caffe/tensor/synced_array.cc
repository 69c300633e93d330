#include "hearth/caffe/tensor/synced_array.h"

#include <tuple>
#include <utility>

namespace hearth::caffe {

SyncedArray::SyncedArray(Tensor host, Tensor device)
    : count_(host.numel()), host_(std::move(host)), remote_(std::move(device)) {
  if (remote_.defined()) device_ = {remote_.device(), true};
}

// The memory comes zeroed, so both copies are equal.
void SyncedArray::TakeMemory() {
  if (!take_) return;
  std::tie(host_, remote_) = take_();
  take_ = nullptr;
  remote_is_new_ = remote_.defined();
}

// The host's copy, up to date. It stays so until the device's is requested for writing.
const Tensor& SyncedArray::FromDevice() {
  TakeMemory();
  if (!host_.defined()) host_ = Tensor::Zeros({count_});
  if (!host_is_new_) host_.copy_(remote_);
  host_is_new_ = true;
  return host_;
}

// On the device, where gradients are added up: nothing is copied. The host's copy becomes stale.
void SyncedArray::FillZero() { device_to_overwrite().zero_(); }

const Tensor& SyncedArray::device_to_overwrite() {
  // Before device(), which would fill a cleared array with zeros.
  is_zero_ = false;
  if (remote_.defined()) remote_is_new_ = true;  // after the write; nothing is copied from the host
  return device();
}

const Tensor& SyncedArray::host_to_read() {
  if (is_zero_) FillZero();
  return device_.separate || !host_.defined() ? FromDevice() : host_;
}

void SyncedArray::Adopt(Tensor values) {
  // First, or the memory that is taken later would replace the values.
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

// The device's copy, up to date. Memory that is allocated here is zero: if the host has none
// either, there is nothing to copy.
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
