#include "hearth/caffe/solver/learning_rate.h"

#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/upgrade/net_file.h"

namespace hearth::caffe {
namespace {

LearningRate RateOf(const std::string& text) {
  return LearningRate(
      ParseSolver("base_lr: 0.1 gamma: 0.5 power: 2 max_iter: 100 " + text, "solver"));
}

TEST(LearningRate, FollowsTheFormulas) {
  EXPECT_FLOAT_EQ(RateOf("lr_policy: 'fixed'").At(7), 0.1f);
  EXPECT_FLOAT_EQ(RateOf("lr_policy: 'step' stepsize: 3").At(7), 0.1f * 0.25f);
  EXPECT_FLOAT_EQ(RateOf("lr_policy: 'exp'").At(3), 0.1f * 0.125f);
  EXPECT_FLOAT_EQ(RateOf("lr_policy: 'inv'").At(2), 0.1f * 0.25f);
  EXPECT_FLOAT_EQ(RateOf("lr_policy: 'poly'").At(50), 0.1f * 0.25f);
  EXPECT_FLOAT_EQ(RateOf("lr_policy: 'sigmoid' stepsize: 5").At(5), 0.05f);
}

TEST(LearningRate, MultistepTakesOneStepAtATime) {
  LearningRate rate = RateOf("lr_policy: 'multistep' stepvalue: 2 stepvalue: 3");
  EXPECT_FLOAT_EQ(rate.At(1), 0.1f);
  EXPECT_FLOAT_EQ(rate.At(5), 0.05f);
  EXPECT_EQ(rate.current_step(), 1);
  EXPECT_FLOAT_EQ(rate.At(6), 0.025f);
  EXPECT_FLOAT_EQ(rate.At(7), 0.025f);
}

TEST(LearningRate, ContinuesFromASavedStep) {
  LearningRate rate = RateOf("lr_policy: 'multistep' stepvalue: 2 stepvalue: 3");
  rate.set_current_step(2);
  EXPECT_FLOAT_EQ(rate.At(9), 0.025f);
}

TEST(LearningRate, RejectsUnknownPoliciesAndMissingNumbers) {
  EXPECT_THAT([] { RateOf("lr_policy: 'stepp'"); },
              testing::ThrowsMessage<Error>(
                  testing::HasSubstr("unknown lr_policy 'stepp'; did you mean step")));
  EXPECT_THAT([] { RateOf("lr_policy: 'step'"); },
              testing::ThrowsMessage<Error>(
                  testing::HasSubstr("lr_policy 'step' needs a stepsize above 0")));
}

}  // namespace
}  // namespace hearth::caffe
