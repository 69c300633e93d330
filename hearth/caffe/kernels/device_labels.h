// Class labels on a device, for the losses and Accuracy.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "hearth/caffe/kernels/labels.h"

namespace hearth::caffe {

struct DeviceLabels {
  at::Tensor index;    // int64, outer x 1 x inner; the ignored ones are class 0
  at::Tensor ignored;  // bool, the same shape
  int64_t valid = 0;   // how many are not ignored

  // Throws kInvalidArgument if a label in the host's copy is not a class.
  static DeviceLabels Of(Blob& labels, const ClassLayout& layout, std::optional<int64_t> ignored);
};

// The scores on the device as outer x classes x inner.
inline at::Tensor ClassView(const at::Tensor& scores, const ClassLayout& layout) {
  return scores.view({layout.outer, layout.classes, layout.inner});
}

}  // namespace hearth::caffe
