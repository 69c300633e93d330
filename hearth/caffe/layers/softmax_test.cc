#include <gmock/gmock.h>

#include <cmath>

#include "hearth/caffe/layers/testing/layer_testing.h"

namespace hearth::caffe {
namespace {

auto SoftmaxReference(size_t axis) {
  return [axis](const Arrays& bottoms, const Arrays&) {
    Array y = bottoms[0];
    int64_t inner = 1;
    for (size_t a = axis + 1; a < y.shape.size(); ++a) inner *= y.shape[a];
    const int64_t classes = y.shape[axis];
    for (int64_t i = 0; i < y.Count() / classes; ++i) {
      const int64_t first = i / inner * classes * inner + i % inner;
      double sum = 0;
      for (int64_t c = 0; c < classes; ++c) sum += std::exp(y.values[first + c * inner]);
      for (int64_t c = 0; c < classes; ++c) {
        float& value = y.values[first + c * inner];
        value = static_cast<float>(std::exp(value) / sum);
      }
    }
    return Arrays{y};
  };
}

}  // namespace

std::vector<LayerCase> SoftmaxCases() {
  std::vector<LayerCase> cases = {
      {"softmax", "type: 'Softmax'", {{{3, 5}}}, SoftmaxReference(1)},
      {"softmax_spatial", "type: 'Softmax'", {{{2, 3, 2, 2}}}, SoftmaxReference(1)},
      {"softmax_last_axis",
       "type: 'Softmax' softmax_param { axis: -1 }",
       {{{2, 3, 4}}},
       SoftmaxReference(2)},
  };
  for (LayerCase& row : cases) row.in_place = true;
  return cases;
}
const bool kSoftmaxCases = AddLayerCases(SoftmaxCases);

namespace {

TEST(Softmax, IsFiniteForLargeScores) {
  const LayerCase row{"case", "type: 'Softmax'", {{{1, 3}}}, nullptr};
  LayerRun run(row);
  const float scores[] = {1e4f, 1e4f, -1e4f};
  std::copy(scores, scores + 3, run.bottoms()[0]->data_ptr());
  run.Forward();
  EXPECT_THAT(run.TopValues()[0].values, ::testing::ElementsAre(0.5f, 0.5f, 0.f));
}

}  // namespace
}  // namespace hearth::caffe
