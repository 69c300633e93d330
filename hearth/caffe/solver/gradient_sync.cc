#include "hearth/caffe/solver/gradient_sync.h"

namespace hearth::caffe {

at::Tensor LocalSync::AllocateDiff(const ParamLayout& layout) {
  return at::zeros({layout.size}, at::kFloat);
}

}  // namespace hearth::caffe
