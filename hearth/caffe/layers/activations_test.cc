#include <gmock/gmock.h>

#include <cmath>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/testing/element_testing.h"

namespace hearth::caffe {

std::vector<LayerCase> ActivationCases() {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  LayerCase threshold =
      ElementCase("threshold", "type: 'Threshold' threshold_param { threshold: 0.3 }",
                  [](double x) { return x > 0.3f ? 1 : 0; });
  threshold.has_gradient = false;
  return {
      ElementCase("sigmoid", "type: 'Sigmoid'", sigmoid),
      ElementCase("tanh", "type: 'TanH'", [](double x) { return std::tanh(x); }),
      ElementCase("absval", "type: 'AbsVal'", [](double x) { return std::fabs(x); }),
      ElementCase("elu", "type: 'ELU' elu_param { alpha: 0.7 }",
                  [](double x) { return x > 0 ? x : 0.7 * (std::exp(x) - 1); }),
      ElementCase("bnll", "type: 'BNLL'", [](double x) { return std::log(1 + std::exp(x)); }),
      ElementCase(
          "bnll_large", "type: 'BNLL'",
          [](double x) { return x > 50 ? x : std::log1p(std::exp(x)); }, -200, 200),
      ElementCase("swish", "type: 'Swish' swish_param { beta: 1.5 }",
                  [sigmoid](double x) { return x * sigmoid(1.5 * x); }),
      ElementCase("clip", "type: 'Clip' clip_param { min: -0.6 max: 1.1 }",
                  [](double x) { return std::min(std::max(x, -0.6), 1.1); }),
      threshold,
  };
}
const bool kActivationCases = AddLayerCases(ActivationCases);

namespace {

TEST(Threshold, HasNoGradient) {
  const LayerCase row = ActivationCases().back();
  LayerRun run(row);
  run.Forward();
  EXPECT_FALSE(run.layer().traits().AllowsForceBackward(0));
  EXPECT_THROW(run.Backward({Array(run.tops()[0]->shape())}), Error);
}

}  // namespace
}  // namespace hearth::caffe
