#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/testing/layer_testing.h"

namespace hearth::caffe {
namespace {

using ::testing::HasSubstr;

// Reference of Im2col over three spatial axes; if the bottom has fewer, the first ones have length
// 1 and a kernel of 1.
struct Columns {
  Shape kernel = {1, 1, 1}, stride = {1, 1, 1}, pad = {0, 0, 0}, dilation = {1, 1, 1};
  int spatial_axes = 2;

  Arrays operator()(const Arrays& bottoms, const Arrays&) const {
    Array x = bottoms[0];
    x.shape.insert(x.shape.begin() + 2, 3 - spatial_axes, 1);
    Shape size(3);
    for (size_t i = 0; i < 3; ++i) {
      size[i] = (x.shape[2 + i] + 2 * pad[i] - dilation[i] * (kernel[i] - 1) - 1) / stride[i] + 1;
    }
    const int64_t taps = kernel[0] * kernel[1] * kernel[2];
    Array y({x.shape[0], x.shape[1] * taps, size[0], size[1], size[2]});
    for (int64_t n = 0; n < x.shape[0]; ++n)
      for (int64_t c = 0; c < x.shape[1] * taps; ++c)
        for (int64_t i = 0; i < size[0]; ++i)
          for (int64_t j = 0; j < size[1]; ++j)
            for (int64_t k = 0; k < size[2]; ++k) {
              y.at({n, c, i, j, k}) = Value(x, {n, c, i, j, k}, taps);
            }
    y.shape.erase(y.shape.begin() + 2, y.shape.begin() + 5 - spatial_axes);
    return {y};
  }

  float Value(const Array& x, const Shape& at, int64_t taps) const {
    Shape from = {at[0], at[1] / taps, 0, 0, 0};
    const int64_t tap = at[1] % taps;
    const Shape tap_position = {tap / (kernel[1] * kernel[2]), tap / kernel[2] % kernel[1],
                                tap % kernel[2]};
    for (size_t i = 0; i < 3; ++i) {
      from[2 + i] = at[2 + i] * stride[i] - pad[i] + tap_position[i] * dilation[i];
      if (from[2 + i] < 0 || from[2 + i] >= x.shape[2 + i]) return 0;
    }
    return x.at(from);
  }
};

LayerCase Im2colRow(std::string name, const std::string& param, Shape bottom,
                    const Columns& columns) {
  return {std::move(name),
          "type: 'Im2col' convolution_param { " + param + " }",
          {{std::move(bottom)}},
          columns};
}

}  // namespace

std::vector<LayerCase> Im2colCases() {
  return {
      Im2colRow("im2col", "kernel_size: 3", {2, 2, 4, 5}, {.kernel = {1, 3, 3}}),
      Im2colRow(
          "im2col_options", "kernel_h: 3 kernel_w: 2 stride: 2 pad: 1 dilation: 2", {1, 2, 6, 5},
          {.kernel = {1, 3, 2}, .stride = {1, 2, 2}, .pad = {0, 1, 1}, .dilation = {1, 2, 2}}),
      Im2colRow("im2col_mostly_padding", "kernel_size: 3 stride: 3 pad: 5", {1, 1, 1, 2},
                {.kernel = {1, 3, 3}, .stride = {1, 3, 3}, .pad = {0, 5, 5}}),
      Im2colRow("im2col_1d", "kernel_size: 2 stride: 2", {2, 3, 5},
                {.kernel = {1, 1, 2}, .stride = {1, 1, 2}, .spatial_axes = 1}),
      Im2colRow("im2col_3d", "kernel_size: 2 pad: 1 stride: 1 stride: 2 stride: 1", {1, 2, 2, 3, 2},
                {.kernel = {2, 2, 2}, .stride = {1, 2, 1}, .pad = {1, 1, 1}, .spatial_axes = 3}),
  };
}
const bool kIm2colCases = AddLayerCases(Im2colCases);

namespace {

std::string Im2colError(const std::string& param, Shape bottom) {
  const LayerCase row = Im2colRow("case", param, std::move(bottom), {});
  try {
    LayerRun(row).Forward();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

// A later in-place layer may have overwritten the zeros of the previous Forward.
TEST(Im2col, WritesZerosUnderPaddingEveryTime) {
  const LayerCase row = Im2colCases()[2];
  LayerRun run(row);
  run.Forward();
  const Arrays first = run.TopValues();
  run.tops()[0]->data().fill_(7);
  run.Forward();
  EXPECT_EQ(run.TopValues()[0].values, first[0].values);
}

TEST(Im2col, NamesInvalidShapes) {
  EXPECT_THAT(Im2colError("kernel_size: 9", {1, 2, 5, 5}),
              HasSubstr("kernel 9 with pad 0 does not fit into axis 2 of shape 1 2 5 5 (50)"));
  EXPECT_THAT(Im2colError("kernel_size: 3", {4, 2}), HasSubstr("has no spatial axes"));
}

}  // namespace
}  // namespace hearth::caffe
