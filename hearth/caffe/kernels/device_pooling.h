// MAX and AVE pooling by ATen's kernels, for tensors on any device.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <optional>

#include "hearth/caffe/kernels/pooling_windows.h"

namespace hearth::caffe {

class DevicePooling {
 public:
  // nullopt where ATen has no such windows: it takes no more padding than half a kernel, and rounds
  // the number of windows in its own way.
  static std::optional<DevicePooling> Of(PoolingParameter::PoolMethod method,
                                         const PoolingAxis& rows, const PoolingAxis& columns);

  // MAX puts into `chosen` the place in its plane that each value came from, and Backward reads it.
  void Forward(const at::Tensor& x, at::Tensor& y, at::Tensor& chosen) const;
  void Backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& chosen,
                at::Tensor& dx) const;

 private:
  bool is_max_ = true, rounds_up_ = true;
  std::array<int64_t, 2> kernel_{}, stride_{}, pad_{};
};

}  // namespace hearth::caffe
