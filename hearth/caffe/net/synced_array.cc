#include "hearth/caffe/net/synced_array.h"

#include <ATen/ATen.h>

#include <tuple>
#include <utility>

namespace hearth::caffe {

SyncedArray::SyncedArray(at::Tensor host, at::Tensor device)
    : count_(host.numel()), host_(std::move(host)), remote_(std::move(device)) {
  if (remote_.defined()) device_ = {remote_.device(), true};
}

void SyncedArray::TakeMemory() {
  if (!take_) return;
  std::tie(host_, remote_) = take_();
  take_ = nullptr;
  remote_is_new_ = remote_.defined();
}

const at::Tensor& SyncedArray::FromDevice() {
  TakeMemory();
  if (!host_.defined()) host_ = at::zeros({count_}, at::kFloat);
  if (!host_is_new_) host_.copy_(remote_);
  host_is_new_ = true;
  return host_;
}

void SyncedArray::FillZero() { device_to_overwrite().zero_(); }

const at::Tensor& SyncedArray::device_to_overwrite() {
  is_zero_ = false;
  if (remote_.defined()) remote_is_new_ = true;  // soon; nothing is brought from the host
  return device();
}

const at::Tensor& SyncedArray::host_to_read() {
  if (is_zero_) FillZero();
  return device_.separate || !host_.defined() ? FromDevice() : host_;
}

void SyncedArray::Adopt(at::Tensor values) {
  TakeMemory();
  remote_ = std::move(values);
  remote_is_new_ = true;
  host_is_new_ = is_zero_ = false;
}

const at::Tensor& SyncedArray::device() {
  if (!device_.separate) return host();
  if (is_zero_) FillZero();
  FromHost();
  host_is_new_ = false;
  return remote_;
}

const at::Tensor& SyncedArray::device_to_read() {
  if (!device_.separate) return host_to_read();
  if (is_zero_) FillZero();
  return FromHost();
}

const at::Tensor& SyncedArray::FromHost() {
  TakeMemory();
  if (!remote_.defined()) {
    remote_ = at::zeros({count_}, at::TensorOptions(at::kFloat).device(device_.device));
    remote_is_new_ = !host_.defined();
  }
  if (!remote_is_new_) remote_.copy_(host_);
  remote_is_new_ = true;
  return remote_;
}

}  // namespace hearth::caffe
