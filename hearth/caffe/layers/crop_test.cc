#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/testing/layer_testing.h"

namespace hearth::caffe {
namespace {

using ::testing::HasSubstr;

// A row of the layer table that crops to `size`. An axis with `size` 0 is not cropped.
LayerCase CropRow(std::string name, const std::string& param, const Shape& size,
                  const Shape& offset) {
  LayerCase row{std::move(name),
                "type: 'Crop' crop_param { " + param + " }",
                {{{2, 3, 5, 6}}, {{2, 2, 3, 2}}},
                [=](const Arrays& bottoms, const Arrays&) {
                  const Array& x = bottoms[0];
                  Shape shape = x.shape;
                  for (size_t i = 0; i < 4; ++i) {
                    if (size[i] > 0) shape[i] = size[i];
                  }
                  Array y(shape);
                  for (int64_t n = 0; n < shape[0]; ++n)
                    for (int64_t c = 0; c < shape[1]; ++c)
                      for (int64_t i = 0; i < shape[2]; ++i)
                        for (int64_t j = 0; j < shape[3]; ++j) {
                          y.at({n, c, i, j}) =
                              x.at({n + offset[0], c + offset[1], i + offset[2], j + offset[3]});
                        }
                  return Arrays{y};
                }};
  return row;
}

}  // namespace

std::vector<LayerCase> CropCases() {
  return {
      CropRow("crop", "", {0, 0, 3, 2}, {0, 0, 0, 0}),
      CropRow("crop_offset", "offset: 1", {0, 0, 3, 2}, {0, 0, 1, 1}),
      CropRow("crop_offsets", "axis: 1 offset: 1 offset: 0 offset: 4", {0, 2, 3, 2}, {0, 1, 0, 4}),
      CropRow("crop_last", "axis: -1 offset: 3", {0, 0, 0, 2}, {0, 0, 0, 3}),
  };
}
const bool kCropCases = AddLayerCases(CropCases);

namespace {

std::string CropError(const std::string& param) {
  const LayerCase row = CropRow("case", param, {}, {});
  try {
    LayerRun(row).Forward();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(Crop, AcceptsAReferenceWithMoreAxes) {
  const LayerCase row{
      "case", "type: 'Crop' crop_param { axis: 1 }", {{{2, 3}}, {{9, 2, 7}}}, nullptr};
  LayerRun run(row);
  run.Forward();
  EXPECT_EQ(run.tops()[0]->shape(), (Shape{2, 2}));
}

TEST(Crop, NamesInvalidShapes) {
  EXPECT_THAT(CropError("offset: 3"),
              HasSubstr("offset 3 + size 3 exceeds axis 2 of the bottom's shape 2 3 5 6 (180)"));
  EXPECT_THAT(
      CropError("axis: 1 offset: 1 offset: 1"),
      HasSubstr("offset is given 2 times; set it once, or once for each of the 3 cropped axes"));
}

}  // namespace
}  // namespace hearth::caffe
