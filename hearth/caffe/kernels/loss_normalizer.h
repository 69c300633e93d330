#pragma once

#include <cstdint>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// The divisor of a loss's sum (loss_param.normalization).
struct LossNormalizer {
  LossParameter::NormalizationMode mode;

  // `fallback` is the mode if loss_param has neither `normalization` nor the older `normalize`.
  static LossNormalizer Read(const LossParameter& param, LossParameter::NormalizationMode fallback);

  // Returns the divisor for outer * inner values in `outer` rows, of which `valid` values are not
  // ignored. It is at least 1, so that a minibatch with only ignored labels has loss 0.
  float Divisor(int64_t outer, int64_t inner, int64_t valid) const;
};

}  // namespace hearth::caffe
