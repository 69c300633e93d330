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

TEST(LearningRate, IsTheBaseAtTheFirstIteration) {
  for (const char* policy :
       {"lr_policy: 'fixed'", "lr_policy: 'step' stepsize: 3", "lr_policy: 'exp'",
        "lr_policy: 'inv'", "lr_policy: 'multistep' stepvalue: 1", "lr_policy: 'poly'"}) {
    EXPECT_FLOAT_EQ(RateOf(policy).At(0), 0.1f) << policy;
  }
}

TEST(LearningRate, ChangesExactlyAtItsSteps) {
  LearningRate step = RateOf("lr_policy: 'step' stepsize: 3");
  for (const auto& [iteration, rate] :
       {std::pair<int, float>{2, 0.1f}, {3, 0.05f}, {5, 0.05f}, {6, 0.025f}, {2, 0.1f}}) {
    EXPECT_FLOAT_EQ(step.At(iteration), rate) << iteration;
  }
  LearningRate multistep = RateOf("lr_policy: 'multistep' stepvalue: 2 stepvalue: 2");
  EXPECT_FLOAT_EQ(multistep.At(1), 0.1f);
  EXPECT_FLOAT_EQ(multistep.At(2), 0.05f);
  EXPECT_FLOAT_EQ(multistep.At(2), 0.025f) << "equal values are two steps";
  EXPECT_FLOAT_EQ(RateOf("lr_policy: 'multistep'").At(1000), 0.1f) << "without steps";
}

TEST(LearningRate, PolyEndsAtZero) {
  EXPECT_EQ(RateOf("lr_policy: 'poly'").At(100), 0);
  EXPECT_GT(RateOf("lr_policy: 'poly'").At(99), 0);
}

TEST(LearningRate, FollowsAChangedBase) {
  LearningRate rate = RateOf("lr_policy: 'step' stepsize: 3");
  EXPECT_FLOAT_EQ(rate.At(3), 0.05f);
  rate.set_base_lr(1);
  EXPECT_FLOAT_EQ(rate.At(3), 0.5f);
}

TEST(LearningRate, RejectsNumbersThatAreNotPositive) {
  for (const auto& [text, reason] : std::vector<std::pair<std::string, std::string>>{
           {"lr_policy: 'step' stepsize: 0", "needs a stepsize above 0, found 0"},
           {"lr_policy: 'step' stepsize: -2", "needs a stepsize above 0, found -2"},
           {"lr_policy: 'sigmoid'", "'sigmoid' needs a stepsize above 0"},
           {"lr_policy: ''", "unknown lr_policy ''"}}) {
    EXPECT_THAT([t = text] { RateOf(t); },
                testing::ThrowsMessage<Error>(testing::HasSubstr(reason)));
  }
  EXPECT_THAT([] { LearningRate(ParseSolver("base_lr: 0.1 lr_policy: 'poly'", "solver")); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("'poly' needs a max_iter above 0")));
}

}  // namespace
}  // namespace hearth::caffe
