#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/testing/layer_testing.h"

namespace hearth::caffe {
namespace {

// Folds the bottoms' values at each position: f(so far, next, index of next).
template <typename Function>
auto Folded(float start, Function f) {
  return [=](const Arrays& bottoms, const Arrays&) {
    Array y(bottoms[0].shape);
    for (size_t i = 0; i < y.values.size(); ++i) {
      y.values[i] = start;
      for (size_t b = 0; b < bottoms.size(); ++b) {
        y.values[i] = f(y.values[i], bottoms[b].values[i], b);
      }
    }
    return Arrays{y};
  };
}

std::string EltwiseText(const std::string& param) {
  return "type: 'Eltwise' eltwise_param { " + param + " }";
}

}  // namespace

std::vector<LayerCase> EltwiseCases() {
  const std::vector<CaseInput> three = {{{2, 3, 4}}, {{2, 3, 4}}, {{2, 3, 4}}};
  std::vector<CaseInput> no_ties = three;
  no_ties[1].high = 2.5f;
  no_ties[2].low = -2.7f;
  const auto product = Folded(1, [](float y, float x, size_t) { return y * x; });
  const auto weighted = [](float y, float x, size_t b) {
    return y + (b == 0 ? 0.5f : b == 1 ? -1.f : 2.f) * x;
  };
  return {
      {"eltwise_sum", EltwiseText(""), three,
       Folded(0, [](float y, float x, size_t) { return y + x; })},
      {"eltwise_coeff", EltwiseText("coeff: 0.5 coeff: -1 coeff: 2"), three, Folded(0, weighted)},
      {"eltwise_product", EltwiseText("operation: PROD"), three, product},
      {"eltwise_product_by_division", EltwiseText("operation: PROD stable_prod_grad: false"), three,
       product},
      {"eltwise_max", EltwiseText("operation: MAX"), no_ties,
       Folded(-100, [](float y, float x, size_t) { return std::max(y, x); })},
  };
}
const bool kEltwiseCases = AddLayerCases(EltwiseCases);

namespace {

TEST(Eltwise, ATieOfTheFirstTwoGoesToTheSecond) {
  const LayerCase row = EltwiseCases().back();
  LayerRun run(row);
  for (Blob* blob : run.bottoms()) blob->data().fill_(1);
  run.Forward();
  run.Backward({Array({2, 3, 4}, std::vector<float>(24, 1))});
  EXPECT_EQ(run.bottoms()[0]->diff_ptr()[0], 0);
  EXPECT_EQ(run.bottoms()[1]->diff_ptr()[0], 1);
  EXPECT_EQ(run.bottoms()[2]->diff_ptr()[0], 0);
}

TEST(Eltwise, NamesInvalidParameters) {
  const LayerCase shapes{"case", EltwiseText(""), {{{2, 3}}, {{3, 2}}}, nullptr};
  EXPECT_THROW(LayerRun(shapes).Forward(), Error);
  const LayerCase coeffs{"case", EltwiseText("coeff: 1"), {{{2}}, {{2}}}, nullptr};
  EXPECT_THROW(LayerRun run(coeffs), Error);
  const LayerCase product{
      "case", EltwiseText("operation: PROD coeff: 1 coeff: 1"), {{{2}}, {{2}}}, nullptr};
  EXPECT_THROW(LayerRun run(product), Error);
}

}  // namespace
}  // namespace hearth::caffe
