// MAX and AVE pooling by ATen's kernels, for tensors on any device.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "hearth/caffe/kernels/pooling_windows.h"
#include "hearth/caffe/net/device_ops.h"

namespace hearth::caffe {

class DevicePooling {
 public:
  // nullopt where ATen has no such windows: it takes no more padding than half a kernel, and rounds
  // the number of windows in its own way.
  static std::optional<DevicePooling> Of(PoolingParameter::PoolMethod method,
                                         const PoolingAxis& rows, const PoolingAxis& columns);

  // MAX puts into `chosen` the place in its plane that each value came from, and Backward reads it.
  void Forward(const Tensor& x, Tensor& y, Tensor& chosen) const;
  void Backward(const Tensor& dy, const Tensor& x, const Tensor& chosen, Tensor& dx) const;

 private:
  bool is_max_ = true;
  device::PoolWindow window_{};
};

}  // namespace hearth::caffe
