#include "hearth/caffe/solver/gradient_sync.h"

namespace hearth::caffe {

Tensor LocalSync::AllocateDiff(const ParamLayout& layout) { return Tensor::Zeros({layout.size}); }

}  // namespace hearth::caffe
