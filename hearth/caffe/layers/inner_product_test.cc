#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "hearth/base/error.h"
#include "hearth/caffe/kernels/int8_product.h"
#include "hearth/caffe/layers/testing/int8_bound.h"
#include "hearth/caffe/layers/testing/layer_testing.h"

namespace hearth::caffe {
namespace {

// Reference of InnerProduct. Rows are the first `axis` axes of the bottom.
auto InnerProductReference(size_t axis, bool transpose) {
  return [=](const Arrays& bottoms, const Arrays& params) {
    const Array& x = bottoms[0];
    const Array& w = params[0];
    const int64_t outputs = w.shape[transpose ? 1 : 0], inputs = w.shape[transpose ? 0 : 1];
    Shape shape(x.shape.begin(), x.shape.begin() + axis);
    shape.push_back(outputs);
    Array y(shape);
    for (int64_t row = 0; row < x.Count() / inputs; ++row)
      for (int64_t o = 0; o < outputs; ++o) {
        double sum = params.size() > 1 ? params[1].values[o] : 0;
        for (int64_t i = 0; i < inputs; ++i) {
          sum += x.values[row * inputs + i] * (transpose ? w.at({i, o}) : w.at({o, i}));
        }
        y.values[row * outputs + o] = static_cast<float>(sum);
      }
    return Arrays{y};
  };
}

std::string InnerProductText(const std::string& param) {
  return "type: 'InnerProduct' inner_product_param { num_output: 5 " + param + " }";
}

}  // namespace

std::vector<LayerCase> InnerProductCases() {
  return {
      {"ip_plain", InnerProductText(""), {{{3, 2, 2, 2}}}, InnerProductReference(1, false)},
      {"ip_axis", InnerProductText("axis: -1"), {{{3, 2, 4}}}, InnerProductReference(2, false)},
      {"ip_transpose",
       InnerProductText("transpose: true"),
       {{{3, 8}}},
       InnerProductReference(1, true)},
      {"ip_no_bias",
       InnerProductText("bias_term: false"),
       {{{3, 8}}},
       InnerProductReference(1, false)},
  };
}
const bool kInnerProductCases = AddLayerCases(InnerProductCases);

namespace {

TEST(InnerProduct, NamesBottomsThatDoNotMatchItsWeights) {
  const LayerCase row = InnerProductCases()[2];
  LayerRun run(row);
  run.bottoms()[0]->Reshape({3, 9});
  try {
    run.Forward();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(
        error.message(),
        "the weights take 8 values per row, but a bottom of shape 3 9 (27) has 9 from axis 1 on");
  }
}

TEST(InnerProduct, RequiresNumOutput) {
  const LayerCase row{"case", "type: 'InnerProduct'", {{{3, 2}}}, nullptr};
  EXPECT_THROW(LayerRun run(row), Error);
}

TEST(InnerProduct, Int8IsCloseToFloat32InEitherOrderOfTheWeights) {
  for (const size_t index : {0, 1, 2, 3}) {
    LayerCase row = InnerProductCases()[index];
    row.phase = TEST;
    row.prepare_context = [](NetContext* context) { context->precision = Precision::kInt8; };
    LayerRun run(row);
    const Array exact = run.Expected()[0];
    run.Forward();
    const Array rounded = run.TopValues()[0];
    double largest = 0, error = 0;
    for (size_t i = 0; i < exact.values.size(); ++i) {
      largest = std::max<double>(largest, std::abs(exact.values[i]));
      error = std::max<double>(error, std::abs(exact.values[i] - rounded.values[i]));
    }
    EXPECT_LT(error, Int8Bound(run, 5)) << row.name;
    EXPECT_EQ(error > 1e-5 * largest, Int8Product::IsSupported()) << row.name;
  }
}

}  // namespace
}  // namespace hearth::caffe
