#include "hearth/caffe/solver/update_rule.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string_view>

#include "hearth/base/error.h"
#include "hearth/caffe/upgrade/net_file.h"

namespace hearth::caffe {
namespace {

// One weight of 1 with gradient 0.5, which the scale halves, over two iterations at rate 0.1.
struct Weight {
  float data = 1, diff = 0.5f, history[2] = {0, 0};

  void Step(const std::string& solver, int steps = 2, float decay = 0) {
    const UpdateRule rule(ParseSolver(solver, "solver"));
    for (int i = 0; i < steps; ++i) {
      rule.Apply({&data, &diff, {&history[0], &history[1]}, 1, 0.5f, 0.1f, decay}, i);
    }
  }
};

TEST(UpdateRule, SgdAppliesTheRateInsideTheMomentum) {
  Weight w;
  w.Step("momentum: 0.9");
  EXPECT_FLOAT_EQ(w.history[0], 0.9f * 0.025f + 0.025f);
  EXPECT_FLOAT_EQ(w.data, 1 - 0.025f - 0.0475f);
}

TEST(UpdateRule, DecayPullsTowardsZero) {
  Weight l2, l1;
  l2.data = l1.data = -2;
  l2.Step("type: 'SGD'", 1, 0.1f);
  EXPECT_FLOAT_EQ(l2.data, -2 - 0.1f * (0.25f - 0.2f));
  l1.Step("regularization_type: 'L1'", 1, 0.1f);
  EXPECT_FLOAT_EQ(l1.data, -2 - 0.1f * (0.25f - 0.1f));
}

TEST(UpdateRule, AdamCorrectsItsBias) {
  Weight w;
  w.Step("type: 'Adam' momentum: 0.9 momentum2: 0.999", 1);
  EXPECT_NEAR(w.data, 1 - 0.1f, 1e-5);
}

TEST(UpdateRule, UpdatesEveryWeightOfALargeParameter) {
  const int64_t count = 100'003;
  std::vector<float> data(count, 1), diff(count, 1), history(count, 0);
  const UpdateRule rule(ParseSolver("momentum: 0.5", "solver"));
  rule.Apply({data.data(), diff.data(), {history.data(), nullptr}, count, 1, 0.25f, 0}, 0);
  EXPECT_THAT(data, testing::Each(0.75f));
  EXPECT_THAT(history, testing::Each(0.25f));
}

// Ranks may have different numbers of threads or devices, and then divide a parameter differently.
TEST(UpdateRule, BitsDoNotDependOnHowAParameterIsDivided) {
  constexpr int64_t kCount = 27;
  for (const char* type : {"SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam"}) {
    const UpdateRule rule(ParseSolver(
        fmt::format("type: '{}' {}", type,
                    std::string_view("AdaGrad RMSProp").find(type) == std::string_view::npos
                        ? "momentum: 0.9"
                        : ""),
        "solver"));
    const auto updated = [&](int64_t part) {
      std::mt19937 random(7);
      std::uniform_real_distribution<float> values(0.1f, 1);
      std::vector<float> data(kCount), diff(kCount), first(kCount), second(kCount);
      for (auto* array : {&data, &diff, &first, &second}) {
        for (float& value : *array) value = values(random);
      }
      for (int64_t at = 0; at < kCount; at += part) {
        const int64_t count = std::min(part, kCount - at);
        rule.Apply({&data[at], &diff[at], {&first[at], &second[at]}, count, 0.3f, 0.01f, 5e-4f}, 0);
      }
      data.insert(data.end(), first.begin(), first.end());
      return data;
    };
    for (const int64_t part : {1, 5, 12}) EXPECT_EQ(updated(part), updated(kCount)) << type;
  }
}

TEST(UpdateRule, RejectsInvalidParameters) {
  const auto fails = [](const std::string& text, const std::string& message) {
    EXPECT_THAT([&] { UpdateRule(ParseSolver(text, "solver")); },
                testing::ThrowsMessage<Error>(testing::HasSubstr(message)));
  };
  fails("type: 'Adamm'", "unknown solver type 'Adamm'; did you mean Adam");
  fails("type: 'AdaGrad' momentum: 0.9", "does not use momentum");
  fails("regularization_type: 'L3'", "must be L1 or L2, found 'L3'");
}

}  // namespace
}  // namespace hearth::caffe
