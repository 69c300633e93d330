#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/testing/layer_testing.h"

namespace hearth::caffe {
namespace {

// Reference of Scale and Bias. The operand is bottom 1 or parameter 0 and covers `axes` axes from
// `axis` on; a bias is the last parameter.
struct Broadcast {
  size_t axis = 1, axes = 1;
  bool adds = false, bias = false;

  Arrays operator()(const Arrays& bottoms, const Arrays& params) const {
    Array y = bottoms[0];
    const Array& operand = bottoms.size() > 1 ? bottoms[1] : params[0];
    int64_t inner = 1;
    for (size_t a = axis + axes; a < y.shape.size(); ++a) inner *= y.shape[a];
    for (int64_t i = 0; i < y.Count(); ++i) {
      const int64_t s = i / inner % operand.Count();
      if (adds) {
        y.values[i] += operand.values[s];
      } else {
        y.values[i] *= operand.values[s];
      }
      if (bias) y.values[i] += params.back().values[s];
    }
    return {y};
  }
};

LayerCase ScaleBiasRow(std::string name, std::string layer, std::vector<CaseInput> bottoms,
                       Broadcast reference) {
  LayerCase row{std::move(name), std::move(layer), std::move(bottoms), reference};
  row.in_place = true;
  row.fixed_rows = reference.axis == 0 || row.bottoms.size() > 1;
  return row;
}

}  // namespace

std::vector<LayerCase> ScaleBiasCases() {
  const CaseInput x = {{2, 3, 2, 2}};
  return {
      ScaleBiasRow("scale_channels", "type: 'Scale'", {x}, {}),
      ScaleBiasRow("scale_with_bias", "type: 'Scale' scale_param { bias_term: true }", {x},
                   {.bias = true}),
      ScaleBiasRow("scale_two_axes", "type: 'Scale' scale_param { axis: 2 num_axes: 2 }", {x},
                   {.axis = 2, .axes = 2}),
      ScaleBiasRow("scale_all",
                   "type: 'Scale' scale_param { axis: 0 num_axes: -1 bias_term: true }", {x},
                   {.axis = 0, .axes = 4, .bias = true}),
      ScaleBiasRow("scale_by_one_value", "type: 'Scale' scale_param { num_axes: 0 }", {x},
                   {.axis = 1, .axes = 0}),
      ScaleBiasRow("scale_by_bottom", "type: 'Scale' scale_param { bias_term: true }",
                   {x, {{3, 2}}}, {.axes = 2, .bias = true}),
      ScaleBiasRow("scale_rows_by_bottom", "type: 'Scale' scale_param { axis: 0 }", {x, {{2}}},
                   {.axis = 0}),
      ScaleBiasRow("bias_channels", "type: 'Bias'", {x}, {.adds = true}),
      ScaleBiasRow("bias_last_axis", "type: 'Bias' bias_param { axis: -1 }", {x},
                   {.axis = 3, .adds = true}),
      ScaleBiasRow("bias_from_bottom", "type: 'Bias' bias_param { axis: 0 }", {x, {{2, 3}}},
                   {.axis = 0, .axes = 2, .adds = true}),
      ScaleBiasRow("bias_by_one_value", "type: 'Bias' bias_param { num_axes: 0 }", {x},
                   {.axes = 0, .adds = true}),
  };
}
const bool kScaleBiasCases = AddLayerCases(ScaleBiasCases);

namespace {

TEST(Scale, NamesAMismatchedOperand) {
  const LayerCase row{"case", "type: 'Scale'", {{{2, 3}}, {{4}}}, nullptr};
  try {
    LayerRun(row).Forward();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "a blob of shape 4 (4) does not match a bottom of shape 2 3 (6) from axis 1 on");
  }
}

TEST(Scale, NamesAxesBeyondTheBottom) {
  const LayerCase row{
      "case", "type: 'Scale' scale_param { axis: 1 num_axes: 2 }", {{{2, 3}}}, nullptr};
  EXPECT_THROW(LayerRun run(row), Error);
}

}  // namespace
}  // namespace hearth::caffe
