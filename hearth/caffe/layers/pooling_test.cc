#include <gmock/gmock.h>

#include <cfloat>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/testing/layer_testing.h"

namespace hearth::caffe {
namespace {

// Reference of Caffe's pooling, for square windows.
struct Pool {
  bool max = true;
  int64_t kernel = 2, stride = 1, pad = 0;
  int64_t out_h = 0, out_w = 0;  // computed by hand
  bool mask = false;

  Arrays operator()(const Arrays& bottoms, const Arrays&) const {
    const Array& x = bottoms[0];
    Array y({x.shape[0], x.shape[1], out_h, out_w}), best(y.shape);
    for (int64_t n = 0; n < x.shape[0]; ++n)
      for (int64_t c = 0; c < x.shape[1]; ++c)
        for (int64_t i = 0; i < out_h; ++i)
          for (int64_t j = 0; j < out_w; ++j) Window(x, n, c, i, j, &y, &best);
    if (mask) return {y, best};
    return {y};
  }

  void Window(const Array& x, int64_t n, int64_t c, int64_t i, int64_t j, Array* y,
              Array* best) const {
    const int64_t height = x.shape[2], width = x.shape[3];
    float sum = 0, largest = -FLT_MAX;
    int64_t counted = 0, index = -1;
    for (int64_t a = i * stride - pad; a < i * stride - pad + kernel; ++a)
      for (int64_t b = j * stride - pad; b < j * stride - pad + kernel; ++b) {
        if (a >= height + pad || b >= width + pad) continue;
        ++counted;  // padding counts in an average
        if (a < 0 || b < 0 || a >= height || b >= width) continue;
        const float value = x.at({n, c, a, b});
        sum += value;
        if (value > largest) {
          largest = value;
          index = a * width + b;
        }
      }
    y->at({n, c, i, j}) = max ? largest : sum / std::max<int64_t>(1, counted);
    best->at({n, c, i, j}) = static_cast<float>(index);
  }
};

std::string PoolText(const std::string& param) {
  return "type: 'Pooling' pooling_param { " + param + " }";
}

// Reference of stochastic pooling in TEST; each plane is one window of four values.
Arrays ExpectationOfWindows(const Arrays& bottoms, const Arrays&) {
  Array y({bottoms[0].shape[0], 1, 1, 1});
  for (int64_t n = 0; n < y.shape[0]; ++n) {
    float sum = 0, squares = 0;
    for (int64_t i = 0; i < 4; ++i) {
      const float v = bottoms[0].values[n * 4 + i];
      sum += v;
      squares += v * v;
    }
    y.values[n] = squares / sum;
  }
  return {y};
}

}  // namespace

std::vector<LayerCase> PoolingCases() {
  const std::vector<CaseInput> image = {{{2, 2, 5, 6}}};
  const Pool ceil{.kernel = 2, .stride = 2, .out_h = 3, .out_w = 3};
  const Pool padded{.kernel = 3, .stride = 2, .pad = 1, .out_h = 3, .out_w = 4};
  const auto average = [](Pool pool) {
    pool.max = false;
    return pool;
  };
  Pool masked = ceil;
  masked.mask = true;
  return {
      {"pool_max_ceil", PoolText("kernel_size: 2 stride: 2"), image, ceil},
      {"pool_max_floor", PoolText("kernel_size: 2 stride: 2 round_mode: FLOOR"), image,
       Pool{.kernel = 2, .stride = 2, .out_h = 2, .out_w = 3}},
      {"pool_max_pad", PoolText("kernel_size: 3 stride: 2 pad: 1"), image, padded},
      {"pool_max_mask", PoolText("kernel_size: 2 stride: 2"), image, masked, 2, TRAIN, {}, {1}},
      {"pool_max_windows_outside",
       PoolText("kernel_size: 1 stride: 3"),
       {{{1, 2, 5, 3}}},
       Pool{.kernel = 1, .stride = 3, .out_h = 3, .out_w = 2},
       1,
       TRAIN,
       {},
       {},
       false},
      // With channels last, channels are processed in blocks of 16, in blocks of 4, and one by one.
      {"pool_max_many_channels",
       PoolText("kernel_size: 3 stride: 2 pad: 1"),
       {{{2, 21, 5, 6}, -60, 60}},
       padded},
      {"pool_ave_many_channels",
       PoolText("pool: AVE kernel_size: 3 stride: 2 pad: 1"),
       {{{2, 21, 5, 6}}},
       average(padded)},
      {"pool_max_kernel_beyond_image",
       PoolText("kernel_size: 3 stride: 2"),
       {{{2, 2, 2, 2}}},
       Pool{.kernel = 3, .stride = 2, .out_h = 1, .out_w = 1}},
      {"pool_ave_ceil", PoolText("pool: AVE kernel_size: 2 stride: 2"), image, average(ceil)},
      {"pool_ave_pad", PoolText("pool: AVE kernel_size: 3 stride: 2 pad: 1"), image,
       average(padded)},
      {"pool_ave_windows_outside",
       PoolText("pool: AVE kernel_size: 1 stride: 3"),
       {{{1, 2, 5, 3}}},
       average({.kernel = 1, .stride = 3, .out_h = 3, .out_w = 2})},
      {"pool_global_ave",
       PoolText("pool: AVE global_pooling: true"),
       {{{2, 2, 3, 3}}},
       average({.kernel = 3, .out_h = 1, .out_w = 1})},
      {"pool_stochastic_test",
       PoolText("pool: STOCHASTIC kernel_size: 2 stride: 2"),
       {{{1, 1, 2, 2}, 1, 5}},
       ExpectationOfWindows,
       1,
       TEST,
       {},
       {},
       false},
  };
}
const bool kPoolingCases = AddLayerCases(PoolingCases);

namespace {

TEST(Pooling, TheGradientOfATieGoesToTheFirst) {
  const LayerCase row{"ties", PoolText("kernel_size: 2"), {{{1, 1, 2, 2}}}, nullptr};
  LayerRun run(row);
  run.bottoms()[0]->data().fill_(1);
  run.Forward();
  run.Backward({Array({1, 1, 1, 1}, {5})});
  EXPECT_EQ(ValuesOf(*run.bottoms()[0]).values, std::vector<float>(4, 1));
  EXPECT_THAT(std::vector<float>(run.bottoms()[0]->diff_ptr(), run.bottoms()[0]->diff_ptr() + 4),
              ::testing::ElementsAre(5, 0, 0, 0));
}

TEST(Pooling, ChoosesInProportionAndPropagatesTheGradientThere) {
  const LayerCase row{
      "draw", PoolText("pool: STOCHASTIC kernel_size: 2"), {{{1000, 1, 2, 2}}}, nullptr};
  LayerRun run(row);
  for (int64_t i = 0; i < 4000; ++i)
    run.bottoms()[0]->data_ptr()[i] = i % 4 == 2 ? 3.f : i % 4 == 0;
  run.Forward();
  float threes = 0;
  for (int64_t n = 0; n < 1000; ++n) {
    const float value = run.tops()[0]->data_ptr()[n];
    ASSERT_TRUE(value == 3 || value == 1) << value;
    threes += value == 3;
  }
  EXPECT_NEAR(threes / 1000, 0.75f, 4 * std::sqrt(0.75f * 0.25f / 1000));
  run.Backward({Array({1000, 1, 1, 1}, std::vector<float>(1000, 2))});
  for (int64_t n = 0; n < 1000; ++n) {
    const float* dx = run.bottoms()[0]->diff_ptr() + n * 4;
    const bool three = run.tops()[0]->data_ptr()[n] == 3;
    ASSERT_EQ(dx[2], three ? 2 : 0);
    ASSERT_EQ(dx[0], three ? 0 : 2);
  }
}

std::string PoolError(const std::string& param, Shape bottom) {
  const LayerCase row{"case", PoolText(param), {{bottom}}, nullptr};
  try {
    LayerRun(row).Forward();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(Pooling, NamesInvalidParameters) {
  using ::testing::HasSubstr;
  EXPECT_THAT(PoolError("kernel_size: 2", {2, 3}), HasSubstr("4 axes, not one of shape 2 3 (6)"));
  EXPECT_THAT(PoolError("stride: 2", {1, 1, 4, 4}), HasSubstr("needs either kernel_size or"));
  EXPECT_THAT(PoolError("kernel_size: 2 pad: 2", {1, 1, 4, 4}), HasSubstr("pad below the kernel"));
  EXPECT_THAT(PoolError("kernel_size: 9", {1, 1, 4, 4}), HasSubstr("kernel 9 with pad 0"));
  EXPECT_THAT(PoolError("pool: STOCHASTIC kernel_size: 3 pad: 1", {1, 1, 4, 4}),
              HasSubstr("takes no padding"));
}

}  // namespace
}  // namespace hearth::caffe
