#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "hearth/caffe/kernels/pooling_windows.h"
#include "hearth/caffe/tensor/device_ops.h"

namespace hearth::caffe {

// MAX and AVE pooling with ATen's kernels, for tensors on any device.
class DevicePooling {
 public:
  // Returns nullopt if ATen does not support these windows: it limits padding to half of the
  // kernel, and rounds the number of windows differently.
  static std::optional<DevicePooling> Of(PoolingParameter::PoolMethod method,
                                         const PoolingAxis& rows, const PoolingAxis& columns);

  // MAX stores in `chosen`, for Backward, the position in the plane from which each value was
  // copied.
  void Forward(const Tensor& x, Tensor& y, Tensor& chosen) const;
  void Backward(const Tensor& dy, const Tensor& x, const Tensor& chosen, Tensor& dx) const;

 private:
  bool is_max_ = true;
  device::PoolWindow window_{};
};

}  // namespace hearth::caffe
