// What the sum of a loss is divided by (loss_param.normalization).
#pragma once

#include <cstdint>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

struct LossNormalizer {
  LossParameter::NormalizationMode mode;

  // `fallback`: the mode when loss_param names neither `normalization` nor the older `normalize`.
  static LossNormalizer Read(const LossParameter& param, LossParameter::NormalizationMode fallback);

  // outer * inner values in `outer` rows, of which `valid` were not ignored. Never below 1, so that
  // a minibatch of nothing but ignored labels has loss 0.
  float Divisor(int64_t outer, int64_t inner, int64_t valid) const;
};

}  // namespace hearth::caffe
