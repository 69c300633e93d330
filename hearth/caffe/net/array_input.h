// Interface of data layers that read arrays instead of rows: MemoryData as in Caffe.
#pragma once

#include "hearth/caffe/tensor/tensor.h"

namespace hearth::caffe {

// Found by dynamic_cast from Layer.
class ArrayInput {
 public:
  virtual ~ArrayInput() = default;

  // Forward then delivers batch_size items at a time, and starts over after the last.
  // `data`: items x channels x height x width, `labels`: one per item; both float32 and contiguous,
  // and referenced. Throws kInvalidArgument unless the number of items is a multiple of batch_size.
  virtual void SetArrays(Tensor data, Tensor labels) = 0;
};

}  // namespace hearth::caffe
