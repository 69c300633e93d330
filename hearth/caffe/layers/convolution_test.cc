#include <gmock/gmock.h>

#include <thread>

#include "hearth/base/error.h"
#include "hearth/caffe/kernels/int8_product.h"
#include "hearth/caffe/kernels/onednn_engine.h"
#include "hearth/caffe/layers/testing/int8_bound.h"
#include "hearth/caffe/layers/testing/layer_testing.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

// Reference of a convolution over two spatial axes; a missing axis has length 1 and a kernel of 1.
struct Conv2d {
  int64_t group = 1, stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dilation = 1;
  bool transposed = false;

  int64_t Out(int64_t in, int64_t kernel, int64_t stride, int64_t pad) const {
    const int64_t reach = dilation * (kernel - 1) + 1;
    return transposed ? stride * (in - 1) + reach - 2 * pad : (in + 2 * pad - reach) / stride + 1;
  }

  // Visits every product of an input with a weight. For a transposed convolution, input and output
  // are swapped.
  Array operator()(const Array& x, const Array& w, const Array* bias) const {
    const int64_t outputs = transposed ? w.shape[1] * group : w.shape[0];
    const int64_t kh = w.shape[2], kw = w.shape[3];
    Array y({x.shape[0], outputs, Out(x.shape[2], kh, stride_h, pad_h),
             Out(x.shape[3], kw, stride_w, pad_w)});
    const Array& coarse = transposed ? x : y;  // indexed by the position of the window
    const Array& fine = transposed ? y : x;
    const int64_t coarse_per_group = coarse.shape[1] / group,
                  fine_per_group = fine.shape[1] / group;
    for (int64_t n = 0; n < x.shape[0]; ++n)
      for (int64_t cc = 0; cc < coarse.shape[1]; ++cc)
        for (int64_t f = 0; f < fine_per_group; ++f)
          for (int64_t i = 0; i < coarse.shape[2]; ++i)
            for (int64_t j = 0; j < coarse.shape[3]; ++j)
              for (int64_t a = 0; a < kh; ++a)
                for (int64_t b = 0; b < kw; ++b) {
                  const int64_t fc = cc / coarse_per_group * fine_per_group + f;
                  const int64_t fi = i * stride_h - pad_h + a * dilation;
                  const int64_t fj = j * stride_w - pad_w + b * dilation;
                  if (fi < 0 || fj < 0 || fi >= fine.shape[2] || fj >= fine.shape[3]) continue;
                  const float weight = w.at({cc, f, a, b});
                  if (transposed) {
                    y.at({n, fc, fi, fj}) += x.at({n, cc, i, j}) * weight;
                  } else {
                    y.at({n, cc, i, j}) += x.at({n, fc, fi, fj}) * weight;
                  }
                }
    if (bias != nullptr) {
      const int64_t plane = y.shape[2] * y.shape[3];
      for (size_t i = 0; i < y.values.size(); ++i) {
        y.values[i] += bias->values[static_cast<int64_t>(i) / plane % outputs];
      }
    }
    return y;
  }
};

auto ConvolutionReference(Conv2d conv) {
  return [conv](const Arrays& bottoms, const Arrays& params) {
    Arrays tops;
    for (const Array& x : bottoms)
      tops.push_back(conv(x, params[0], params.size() > 1 ? &params[1] : nullptr));
    return tops;
  };
}

// Reference for bottoms, weights and tops that do not have four axes: applies the two-dimensional
// reference to them. `x` and `w` are the four-axis shapes of bottom and weights, `y` is the shape
// of the top.
auto ConvolutionShape(const Shape& x, const Shape& w, const Shape& y) {
  return [=](const Arrays& bottoms, const Arrays& params) {
    Shape in = x;
    in[0] = bottoms[0].Count() / (x[1] * x[2] * x[3]);
    Array out = Conv2d{}(Array(in, bottoms[0].values), Array(w, params[0].values), &params[1]);
    out.shape = y;
    out.shape[0] = bottoms[0].shape[0];
    return Arrays{out};
  };
}

std::string ConvolutionText(const std::string& param) {
  return "type: 'Convolution' convolution_param { num_output: 4 " + param + " }";
}

}  // namespace

std::vector<LayerCase> ConvolutionCases() {
  const std::vector<CaseInput> image = {{{2, 2, 5, 6}}};
  return {
      {"conv_plain", ConvolutionText("kernel_size: 3"), image, ConvolutionReference({})},
      {"conv_stride_pad", ConvolutionText("kernel_size: 3 stride: 2 pad: 1"), image,
       ConvolutionReference({.stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1})},
      {"conv_hw",
       ConvolutionText("kernel_h: 2 kernel_w: 3 stride_h: 1 stride_w: 2 pad_h: 1 pad_w: 0"), image,
       ConvolutionReference({.stride_w = 2, .pad_h = 1})},
      {"conv_group_dilation", ConvolutionText("kernel_size: 2 group: 2 dilation: 2"), image,
       ConvolutionReference({.group = 2, .dilation = 2})},
      {"conv_no_bias", ConvolutionText("kernel_size: 1 bias_term: false"), image,
       ConvolutionReference({})},
      {"conv_two_bottoms",
       ConvolutionText("kernel_size: 3"),
       {{{2, 2, 4, 4}}, {{2, 2, 4, 4}}},
       ConvolutionReference({}),
       2},
      // With channels last, ChannelsLastConvolution computes the gradients of the next two cases.
      {"conv_partly_filled_blocks",
       "type: 'Convolution' convolution_param { num_output: 5 kernel_h: 2 kernel_w: 3 }",
       {{{3, 9, 4, 5}}},
       ConvolutionReference({})},
      {"conv_partly_filled_blocks_stride_pad",
       "type: 'Convolution' convolution_param { num_output: 3 kernel_size: 3 stride: 2 pad: 1 }",
       {{{2, 8, 6, 5}}},
       ConvolutionReference({.stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1})},
      {"conv_1d",
       ConvolutionText("kernel_size: 3"),
       {{{2, 2, 6}}},
       ConvolutionShape({2, 2, 1, 6}, {4, 2, 1, 3}, {2, 4, 4})},
      {"conv_3d",
       "type: 'Convolution' convolution_param { num_output: 1 kernel_size: 1 }",
       {{{1, 2, 2, 3, 2}}},
       ConvolutionShape({1, 2, 6, 2}, {1, 2, 1, 1}, {1, 1, 2, 3, 2})},
      {"conv_axis_2",
       ConvolutionText("kernel_size: 3 axis: 2"),
       {{{2, 3, 2, 5}}},
       ConvolutionShape({6, 2, 1, 5}, {4, 2, 1, 3}, {2, 3, 4, 3})},
      {"conv_no_spatial_axes",
       "type: 'Convolution' convolution_param { num_output: 3 }",
       {{{4, 2}}},
       ConvolutionShape({4, 2, 1, 1}, {3, 2, 1, 1}, {4, 3})},
      {"deconv_stride_pad",
       "type: 'Deconvolution' convolution_param { num_output: 4 kernel_size: 3 stride: 2 pad: 1 }",
       {{{2, 2, 3, 3}}},
       ConvolutionReference(
           {.stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1, .transposed = true})},
      {"deconv_group",
       "type: 'Deconvolution' convolution_param { num_output: 4 kernel_size: 2 group: 2 }",
       {{{2, 2, 3, 3}}},
       ConvolutionReference({.group = 2, .transposed = true})},
  };
}
const bool kConvolutionCases = AddLayerCases(ConvolutionCases);

namespace {

std::string SetUpError(const std::string& layer, Shape bottom) {
  const LayerCase row{"case", layer, {{bottom}}, nullptr};
  try {
    LayerRun run(row);
    run.Forward();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(Convolution, NamesInvalidShapes) {
  EXPECT_THAT(SetUpError(ConvolutionText("kernel_size: 9"), {1, 2, 5, 5}),
              "kernel 9 with pad 0 does not fit into axis 2 of shape 1 2 5 5 (50)");
  EXPECT_THAT(SetUpError(ConvolutionText("kernel_size: 3 group: 3"), {1, 2, 5, 5}),
              "group 3 does not divide its 2 input channels and 4 outputs");
  EXPECT_THAT(SetUpError("type: 'Convolution' convolution_param { kernel_size: 3 }", {1, 2, 5, 5}),
              "convolution_param needs num_output, the number of output channels");
}

TEST(Convolution, SkipsTheGradientOfAFrozenParameter) {
  const LayerCase row = ConvolutionCases()[0];
  LayerRun run(row);
  run.Forward();
  run.layer().set_param_propagate_down(0, false);
  run.layer().blobs()[0]->diff().fill_(3);
  run.Backward({Array(run.tops()[0]->shape(), std::vector<float>(run.tops()[0]->count(), 1))});
  EXPECT_THAT(ListOf(run.layer().blobs()[0]->diff()), testing::Each(3));
  EXPECT_EQ(run.layer().blobs()[1]->diff_ptr()[0], 2 * 3 * 4);
}

// A Python program may create a net in one thread and use it in another.
TEST(Convolution, CanRunInAnotherThreadThanItWasCreatedIn) {
  const LayerCase row{"case",
                      "type: 'Convolution' convolution_param { num_output: 50 kernel_size: 5 "
                      "weight_filler { type: 'xavier' } }",
                      {{{16, 20, 12, 12}}},
                      nullptr};
  LayerRun here(row), there(row);
  const auto compute = [](LayerRun& run) {
    run.Forward();
    run.Backward({Array(run.tops()[0]->shape(), std::vector<float>(run.tops()[0]->count(), 1))});
  };
  compute(here);
  compute(there);  // `there` creates everything that it needs in this thread
  there.layer().blobs()[0]->diff().zero_();
  std::thread([&] { compute(there); }).join();
  const auto equal = [](const Tensor& a, const Tensor& b) { return AllClose(a, b, 1e-5, 1e-5); };
  EXPECT_TRUE(equal(here.tops()[0]->data(), there.tops()[0]->data()));
  EXPECT_TRUE(equal(here.bottoms()[0]->diff(), there.bottoms()[0]->diff()));
  EXPECT_TRUE(equal(here.layer().blobs()[0]->diff(), there.layer().blobs()[0]->diff()));
}

// Products of bfloat16 values have 8 significant bits; their sums are float32.
TEST(Convolution, Bfloat16IsCloseToFloat32IfTheCpuSupportsIt) {
  constexpr auto kNeeded = static_cast<unsigned>(dnnl_cpu_isa_avx512_core_bf16);
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  if ((isa & kNeeded) != kNeeded) GTEST_SKIP() << "oneDNN finds no AVX512-BF16";
  const LayerCase plain = ConvolutionCases()[0];
  LayerCase rounded = plain;
  rounded.prepare_context = [](NetContext* context) { context->precision = Precision::kBfloat16; };
  LayerRun runs[] = {LayerRun(plain), LayerRun(rounded)};
  for (LayerRun& run : runs) {
    run.Forward();
    Array dy(run.tops()[0]->shape());
    for (size_t i = 0; i < dy.values.size(); ++i) dy.values[i] = 0.1f * static_cast<float>(i % 7);
    run.Backward({dy});
  }
  const auto near = [](const Tensor& exact, const Tensor& rounded) {
    const double most = LargestMagnitude(Sum(exact, rounded, -1));
    return most > 0 && most < 0.02 * LargestMagnitude(exact);
  };
  EXPECT_TRUE(near(runs[0].tops()[0]->data(), runs[1].tops()[0]->data()));
  EXPECT_TRUE(near(runs[0].bottoms()[0]->diff(), runs[1].bottoms()[0]->diff()));
  EXPECT_TRUE(near(runs[0].layer().blobs()[0]->diff(), runs[1].layer().blobs()[0]->diff()));
}

TEST(Convolution, Int8IsCloseToFloat32AndEqualWithoutVnni) {
  const LayerCase plain = ConvolutionCases()[0];
  LayerCase rounded = plain;
  rounded.phase = TEST;
  rounded.prepare_context = [](NetContext* context) { context->precision = Precision::kInt8; };
  LayerRun runs[] = {LayerRun(plain), LayerRun(rounded)};
  for (LayerRun& run : runs) run.Forward();
  const Tensor& exact = runs[0].tops()[0]->data();
  const double error = LargestMagnitude(Sum(exact, runs[1].tops()[0]->data(), -1));
  EXPECT_LT(error, Int8Bound(runs[1], exact.size(1)));
  EXPECT_EQ(error > 0, Int8Product::IsSupported());
}

}  // namespace
}  // namespace hearth::caffe
