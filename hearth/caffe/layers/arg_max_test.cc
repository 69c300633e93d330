#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/testing/layer_testing.h"

namespace hearth::caffe {
namespace {

using ::testing::ElementsAre;

// The position of the k-th largest of `count` values with the given stride.
int64_t Best(const float* x, int64_t count, int64_t stride, int64_t k) {
  for (int64_t i = 0; i < count; ++i) {
    int64_t better = 0;
    for (int64_t j = 0; j < count; ++j) better += x[j * stride] > x[i * stride];
    if (better == k) return i;
  }
  return -1;
}

// Reference of ArgMax for whole rows of 12 values: positions, followed by the values if `values` is
// true.
auto ArgMaxRowReference(int64_t top_k, bool values) {
  return [=](const Arrays& bottoms, const Arrays&) {
    const Array& x = bottoms[0];
    Array y({x.shape[0], values ? 2 : 1, top_k});
    for (int64_t n = 0; n < x.shape[0]; ++n)
      for (int64_t k = 0; k < top_k; ++k) {
        const float* row = &x.values[n * 12];
        const int64_t best = Best(row, 12, 1, k);
        y.at({n, 0, k}) = static_cast<float>(best);
        if (values) y.at({n, 1, k}) = row[best];
      }
    return Arrays{y};
  };
}

// Reference for axis 1, which has length 4 and is followed by an axis of length 3.
auto AxisReference(int64_t top_k, bool values) {
  return [=](const Arrays& bottoms, const Arrays&) {
    const Array& x = bottoms[0];
    Array y({x.shape[0], top_k, 3});
    for (int64_t n = 0; n < x.shape[0]; ++n)
      for (int64_t i = 0; i < 3; ++i)
        for (int64_t k = 0; k < top_k; ++k) {
          const float* column = &x.values[n * 12 + i];
          const int64_t best = Best(column, 4, 3, k);
          y.at({n, k, i}) = values ? column[best * 3] : static_cast<float>(best);
        }
    return Arrays{y};
  };
}

LayerCase ArgMaxRow(std::string name, const std::string& param,
                    std::function<Arrays(const Arrays&, const Arrays&)> reference) {
  LayerCase row{std::move(name),
                "type: 'ArgMax' argmax_param { " + param + " }",
                {{{2, 4, 3}}},
                std::move(reference)};
  row.has_gradient = false;
  return row;
}

}  // namespace

std::vector<LayerCase> ArgMaxCases() {
  return {
      ArgMaxRow("argmax", "", ArgMaxRowReference(1, false)),
      ArgMaxRow("argmax_values", "out_max_val: true top_k: 3", ArgMaxRowReference(3, true)),
      ArgMaxRow("argmax_axis", "axis: 1 top_k: 2", AxisReference(2, false)),
      ArgMaxRow("argmax_axis_values", "axis: -2 out_max_val: true", AxisReference(1, true)),
  };
}
const bool kArgMaxCases = AddLayerCases(ArgMaxCases);

namespace {

TEST(ArgMax, PutsTheLargerPositionFirstAmongEqualValues) {
  const LayerCase row = ArgMaxRow("case", "top_k: 2", nullptr);
  LayerRun run(row);
  run.bottoms()[0]->data().fill_(1);
  run.Forward();
  EXPECT_THAT(run.TopValues()[0].values, ElementsAre(11, 10, 11, 10));
}

TEST(ArgMax, KeepsTheBottomsNumberOfAxes) {
  const LayerCase row{"case", "type: 'ArgMax'", {{{2, 3, 2, 2, 1}}}, nullptr};
  LayerRun run(row);
  run.Forward();
  EXPECT_THAT(run.tops()[0]->shape(), ElementsAre(2, 1, 1, 1, 1));
}

TEST(ArgMax, RejectsATopKAboveTheValuesAndAGradient) {
  const LayerCase too_many = ArgMaxRow("case", "axis: 1 top_k: 5", nullptr);
  EXPECT_THROW(LayerRun(too_many).Forward(), Error);
  const LayerCase row = ArgMaxRow("case", "", nullptr);
  LayerRun run(row);
  run.Forward();
  EXPECT_FALSE(run.layer().traits().AllowsForceBackward(0));
  EXPECT_THROW(run.layer().Backward(run.tops(), {true}, run.bottoms()), Error);
}

}  // namespace
}  // namespace hearth::caffe
