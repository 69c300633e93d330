#include <gmock/gmock.h>

#include <cmath>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/testing/layer_testing.h"

namespace hearth::caffe {
namespace {

using ::testing::HasSubstr;

// Reference of Embed: the one-hot vector of each index, times the weights.
Arrays EmbedReference(const Arrays& bottoms, const Arrays& params) {
  const Array& w = params[0];
  Shape shape = bottoms[0].shape;
  shape.push_back(w.shape[1]);
  Array y(shape);
  for (int64_t i = 0; i < bottoms[0].Count(); ++i)
    for (int64_t o = 0; o < w.shape[1]; ++o) {
      double sum = params.size() > 1 ? params[1].values[o] : 0;
      for (int64_t k = 0; k < w.shape[0]; ++k) sum += (bottoms[0].values[i] == k) * w.at({k, o});
      y.values[i * w.shape[1] + o] = static_cast<float>(sum);
    }
  return {y};
}

LayerCase EmbedRow(std::string name, const std::string& param, Shape indices, int first = 0) {
  LayerCase row{std::move(name),
                "type: 'Embed' embed_param { input_dim: 4 num_output: 3 " + param + " }",
                {{std::move(indices), 0, 0, 4 - first, first}},
                EmbedReference};
  row.without_gradient = {0};
  return row;
}

}  // namespace

std::vector<LayerCase> EmbedCases() {
  return {
      EmbedRow("embed", "", {3, 2}),
      EmbedRow("embed_no_bias", "bias_term: false", {7}),
      EmbedRow("embed_filled_up", "", {9, 2}, -1),
  };
}
const bool kEmbedCases = AddLayerCases(EmbedCases);

namespace {

std::string ErrorAt(float index) {
  const LayerCase row = EmbedRow("case", "", {5});
  LayerRun run(row);
  run.bottoms()[0]->data().zero_();
  run.bottoms()[0]->data_ptr()[3] = index;
  try {
    run.Forward();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(Embed, NamesAnIndexOutOfRange) {
  EXPECT_THAT(ErrorAt(4), HasSubstr("index 4 at position 3 must be from 0 to input_dim - 1 = 3"));
  EXPECT_THAT(ErrorAt(-2), HasSubstr("index -2 at position 3"));
  EXPECT_EQ(ErrorAt(-1), "");
  EXPECT_THAT(ErrorAt(NAN), HasSubstr("index nan at position 3"));
}

TEST(Embed, RequiresItsSizesAndRejectsAGradientForIndices) {
  const LayerCase no_sizes{"case", "type: 'Embed'", {{{2}}}, nullptr};
  EXPECT_THROW(LayerRun run(no_sizes), Error);
  const LayerCase row = EmbedRow("case", "", {5});
  LayerRun run(row);
  run.Forward();
  EXPECT_THROW(run.layer().Backward(run.tops(), {true}, run.bottoms()), Error);
}

}  // namespace
}  // namespace hearth::caffe
