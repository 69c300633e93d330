#include <gmock/gmock.h>

#include <cmath>

#include "hearth/caffe/layers/testing/recurrent_testing.h"

namespace hearth::caffe {

std::vector<LayerCase> RnnCases() {
  return {
      RecurrentRow("rnn", {.lstm = false}),
      RecurrentRow("rnn_static", {.lstm = false, .has_static = true}),
      RecurrentRow("rnn_exposed", {.lstm = false, .exposed = true}),
      RecurrentRow("rnn_exposed_static", {.lstm = false, .has_static = true, .exposed = true}),
  };
}
const bool kRnnCases = AddLayerCases(RnnCases);

namespace {

// These parameters are required for reading BVLC Caffe's model files.
TEST(Rnn, HasCaffesParameters) {
  EXPECT_THAT(ParamShapes("RNN"), ::testing::ElementsAre(5, 6, 5, 5, 7, 5, 5, 5, 5, 5));
}

// One unit with weights 1 and biases 0: h = tanh(x + h before), and the top is tanh(h).
TEST(Rnn, AppliesTanhToTheStateAndToTheTop) {
  const LayerCase row{
      "case", "type: 'RNN' recurrent_param { num_output: 1 }", {{{2, 1, 1}}, {{2, 1}}}, nullptr};
  LayerRun run(row);
  for (const auto& blob : run.layer().blobs()) blob->data().fill_(blob->num_axes() == 1 ? 0 : 1);
  const float x[] = {0.5F, -0.25F}, marks[] = {0, 1};
  std::copy(x, x + 2, run.bottoms()[0]->data_ptr());
  std::copy(marks, marks + 2, run.bottoms()[1]->data_ptr());
  run.Forward();
  const float first = std::tanh(0.5F), second = std::tanh(-0.25F + first);
  EXPECT_THAT(run.TopValues()[0].values,
              ::testing::ElementsAre(::testing::FloatNear(std::tanh(first), 1e-6F),
                                     ::testing::FloatNear(std::tanh(second), 1e-6F)));
}

}  // namespace
}  // namespace hearth::caffe
