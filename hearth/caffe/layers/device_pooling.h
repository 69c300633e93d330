// MAX and AVE pooling by ATen's kernels, for tensors on any device.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <optional>

#include "hearth/caffe/layers/pooling_windows.h"

namespace hearth::caffe {

class DevicePooling {
 public:
  // nullopt where ATen has no such windows: it takes no more padding than half a kernel, and rounds
  // the number of windows in its own way.
  static std::optional<DevicePooling> Of(PoolingParameter::PoolMethod method,
                                         const PoolingAxis& rows, const PoolingAxis& columns);

  void Forward(const at::Tensor& x, at::Tensor& y);
  // After Forward.
  void Backward(const at::Tensor& dy, const at::Tensor& x, at::Tensor& dx) const;
  // MAX: the place in its plane that each value of the last Forward came from.
  const at::Tensor& chosen() const { return chosen_; }

 private:
  bool is_max_ = true, rounds_up_ = true;
  std::array<int64_t, 2> kernel_{}, stride_{}, pad_{};
  at::Tensor chosen_;
};

}  // namespace hearth::caffe
