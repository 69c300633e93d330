#include "hearth/caffe/kernels/loss_normalizer.h"

#include <gtest/gtest.h>

namespace hearth::caffe {
namespace {

TEST(LossNormalizer, ReadsTheOlderFieldOnlyWithoutTheNewOne) {
  LossParameter param;
  EXPECT_EQ(LossNormalizer::Read(param, LossParameter::FULL).mode, LossParameter::FULL);
  param.set_normalize(false);
  EXPECT_EQ(LossNormalizer::Read(param, LossParameter::FULL).mode, LossParameter::BATCH_SIZE);
  param.set_normalize(true);
  EXPECT_EQ(LossNormalizer::Read(param, LossParameter::FULL).mode, LossParameter::VALID);
  param.set_normalization(LossParameter::NONE);
  EXPECT_EQ(LossNormalizer::Read(param, LossParameter::FULL).mode, LossParameter::NONE);
}

TEST(LossNormalizer, IsAtLeastOne) {
  EXPECT_EQ(LossNormalizer{LossParameter::VALID}.Divisor(4, 1, 0), 1);
  EXPECT_EQ(LossNormalizer{LossParameter::FULL}.Divisor(4, 3, 0), 12);
}

}  // namespace
}  // namespace hearth::caffe
