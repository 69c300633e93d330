#pragma once

#include <cstdint>
#include <optional>

#include "hearth/caffe/kernels/labels.h"
#include "hearth/caffe/tensor/tensor.h"

namespace hearth::caffe {

// Class labels on a device, for the losses and Accuracy.
struct DeviceLabels {
  Tensor index;       // int64, outer x 1 x inner; 0 for ignored labels
  Tensor ignored;     // bool, in the shape of index
  int64_t valid = 0;  // number of labels that are not ignored

  // Throws kInvalidArgument if a label in the host's copy is not a class.
  static DeviceLabels Of(Blob& labels, const ClassLayout& layout, std::optional<int64_t> ignored);
};

// Views the scores on the device as outer x classes x inner.
inline Tensor ClassView(const Tensor& scores, const ClassLayout& layout) {
  return scores.view({layout.outer, layout.classes, layout.inner});
}

}  // namespace hearth::caffe
