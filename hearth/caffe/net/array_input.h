// Interface of data layers that, like Caffe's MemoryData, can read arrays instead of rows.
#pragma once

#include "hearth/caffe/tensor/tensor.h"

namespace hearth::caffe {

// A data layer that can read arrays. The layer is found by a dynamic_cast from Layer.
class ArrayInput {
 public:
  virtual ~ArrayInput() = default;

  // From now on, Forward delivers batch_size items at a time and starts again after the last one.
  // `data` has the shape items x channels x height x width; `labels` has one value per item. Both
  // must be float32 and contiguous; they are referenced, not copied. Throws kInvalidArgument unless
  // the number of items is a multiple of batch_size.
  virtual void SetArrays(Tensor data, Tensor labels) = 0;
};

}  // namespace hearth::caffe
