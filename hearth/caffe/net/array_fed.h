// A data layer that takes its values from arrays instead of rows: MemoryData in Caffe's own way.
#pragma once

#include "hearth/caffe/net/tensor.h"

namespace hearth::caffe {

// Found by dynamic_cast from Layer.
class ArrayFed {
 public:
  virtual ~ArrayFed() = default;

  // Forward then delivers batch_size items after another, from the first again after the last.
  // `data`: items x channels x height x width, `labels`: one per item; both float32 and contiguous,
  // and kept. The number of items must be a multiple of batch_size, else kInvalidArgument.
  virtual void SetArrays(Tensor data, Tensor labels) = 0;
};

}  // namespace hearth::caffe
