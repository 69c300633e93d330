#include <gmock/gmock.h>

#include <limits>

#include "hearth/caffe/layers/testing/element_testing.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {

std::vector<LayerCase> ReluCases() {
  const auto prelu = [](bool shared) {
    return [shared](const Arrays& bottoms, const Arrays& params) {
      Array y = bottoms[0];
      for (size_t i = 0; i < y.values.size(); ++i) {
        const float slope = params[0].values[shared ? 0 : i / 4 % 2];
        if (y.values[i] < 0) y.values[i] *= slope;
      }
      return Arrays{y};
    };
  };
  std::vector<LayerCase> cases = {
      ElementCase("relu", "type: 'ReLU'", [](double x) { return x > 0 ? x : 0; }),
      ElementCase("relu_leaky", "type: 'ReLU' relu_param { negative_slope: 0.1 }",
                  [](double x) { return x > 0 ? x : 0.1 * x; }),
      ElementCase("relu_turned", "type: 'ReLU' relu_param { negative_slope: -0.5 }",
                  [](double x) { return x > 0 ? x : -0.5 * x; }),
      {"prelu", "type: 'PReLU'", {{{3, 2, 4}}}, prelu(false)},
      {"prelu_shared",
       "type: 'PReLU' prelu_param { channel_shared: true }",
       {{{3, 2, 4}}},
       prelu(true)},
  };
  cases[3].in_place = cases[4].in_place = true;
  return cases;
}
const bool kReluCases = AddLayerCases(ReluCases);

namespace {

// If the layer turned NaN into 0, training that diverges would look normal.
TEST(Relu, PropagatesNaN) {
  const LayerCase row{"case", "type: 'ReLU'", {{{40}}}, nullptr};
  LayerRun run(row);
  run.bottoms()[0]->data().fill_(std::numeric_limits<float>::quiet_NaN());
  run.Forward();
  EXPECT_THAT(ListOf(run.tops()[0]->data()), testing::Each(testing::IsNan()));
}

}  // namespace

}  // namespace hearth::caffe
