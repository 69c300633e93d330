#include "hearth/caffe/kernels/loss_normalizer.h"

#include <algorithm>

namespace hearth::caffe {

// Like Caffe's LossLayer: `normalization` takes precedence over `normalize`, the older flag.
LossNormalizer LossNormalizer::Read(const LossParameter& param,
                                    LossParameter::NormalizationMode fallback) {
  if (param.has_normalization()) return {param.normalization()};
  if (param.has_normalize()) {
    return {param.normalize() ? LossParameter::VALID : LossParameter::BATCH_SIZE};
  }
  return {fallback};
}

float LossNormalizer::Divisor(int64_t outer, int64_t inner, int64_t valid) const {
  int64_t divisor = 1;
  if (mode == LossParameter::FULL) divisor = outer * inner;
  if (mode == LossParameter::VALID) divisor = valid;
  if (mode == LossParameter::BATCH_SIZE) divisor = outer;
  return static_cast<float>(std::max<int64_t>(1, divisor));
}

}  // namespace hearth::caffe
