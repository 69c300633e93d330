#include <gmock/gmock.h>

#include <cmath>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/testing/element_testing.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {

std::vector<LayerCase> DropoutCases() {
  LayerCase test = ElementCase("dropout_test", "type: 'Dropout'", [](double x) { return x; });
  test.phase = TEST;
  return {test};
}
const bool kDropoutCases = AddLayerCases(DropoutCases);

namespace {

LayerCase TrainingRow(float ratio, int64_t count) {
  return {"train",
          fmt::format("type: 'Dropout' dropout_param {{ dropout_ratio: {} }}", ratio),
          {{{count}, 1, 2}},
          nullptr};
}

TEST(Dropout, KeepsTheExpectedFractionAndScalesItUp) {
  constexpr int64_t kCount = 100000;
  const LayerCase row = TrainingRow(0.3f, kCount);
  LayerRun run(row);
  run.Forward();
  const float *x = run.bottoms()[0]->data_ptr(), *y = run.tops()[0]->data_ptr();
  int64_t dropped = 0, dropped_pairs = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    dropped += y[i] == 0;
    dropped_pairs += i > 0 && y[i] == 0 && y[i - 1] == 0;
    if (y[i] != 0) {
      ASSERT_FLOAT_EQ(y[i], x[i] / 0.7f);
    }
  }
  // The tolerances are four and six standard deviations. The number of dropped pairs shows that
  // adjacent values are dropped independently.
  EXPECT_NEAR(dropped, 0.3 * kCount, 4 * std::sqrt(0.3 * 0.7 * kCount));
  EXPECT_NEAR(dropped_pairs, 0.09 * kCount, 6 * std::sqrt(0.09 * 0.91 * kCount));
}

TEST(Dropout, PropagatesTheGradientThroughTheSameMask) {
  const LayerCase row = TrainingRow(0.5f, 1000);
  LayerRun run(row);
  run.Forward();
  run.Backward({Array({1000}, std::vector<float>(1000, 3))});
  for (int64_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(run.bottoms()[0]->diff_ptr()[i], run.tops()[0]->data_ptr()[i] == 0 ? 0 : 6);
  }
}

TEST(Dropout, UsesADifferentMaskInEveryForward) {
  const LayerCase row = TrainingRow(0.5f, 1000);
  LayerRun run(row);
  run.Forward();
  const Array first = run.TopValues()[0];
  run.Forward();
  EXPECT_NE(run.TopValues()[0].values, first.values);
}

TEST(Dropout, KeepsEverythingAtARatioOfZero) {
  const LayerCase row = TrainingRow(0, 1000);
  LayerRun run(row);
  run.Forward();
  run.Backward({Array({1000}, std::vector<float>(1000, 3))});
  EXPECT_TRUE(Equal(run.tops()[0]->data(), run.bottoms()[0]->data()));
  EXPECT_TRUE(Equal(run.bottoms()[0]->diff(), Full({1000}, 3.f)));
}

TEST(Dropout, RejectsARatioOutsideOfZeroToOne) {
  for (const float ratio : {1.f, -0.1f}) {
    const LayerCase row = TrainingRow(ratio, 10);
    EXPECT_THROW(LayerRun run(row), Error) << ratio;
  }
}

}  // namespace
}  // namespace hearth::caffe
