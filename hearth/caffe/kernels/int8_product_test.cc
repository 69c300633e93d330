#include "hearth/caffe/kernels/int8_product.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "hearth/caffe/tensor/blob.h"
#include "hearth/caffe/tensor/parallel.h"
#include "hearth/caffe/tensor/random.h"

namespace hearth::caffe {
namespace {

using Spec = OnednnConvolution::Spec;
using Values = std::vector<float>;

// Fills the blob in row-major order; the magnitude of the values increases with the row.
void Fill(Blob& blob, float low, uint64_t seed) {
  Random random(seed);
  Tensor values = Tensor::Empty(blob.shape());
  const int64_t size = blob.count() / blob.shape(0);
  for (int64_t i = 0; i < blob.count(); ++i) {
    const int64_t row = i / size;
    values.data_ptr()[i] = random.Uniform(low, 1) * static_cast<float>(1 + row);
  }
  blob.data().copy_(values);
}

Values ListOf(Blob& blob) {
  const Tensor values = blob.data().contiguous();
  return {values.data_ptr(), values.data_ptr() + values.numel()};
}

// A convolution and its inputs.
struct Case {
  Spec spec;
  float low;  // lower limit of x: 0 for no negative values
  Layout layout;
  Blob x, w, b, y;

  Case(const Spec& given, float low, Layout layout) : spec(given), low(low), layout(layout) {
    const auto image_shape = [&](int64_t channels, const Shape& axes) {
      Shape shape{spec.batch, channels};
      shape.insert(shape.end(), axes.begin(), axes.end());
      return shape;
    };
    Shape weights{spec.outputs, spec.channels / spec.group};
    weights.insert(weights.end(), spec.kernel.begin(), spec.kernel.end());
    x.Reshape(image_shape(spec.channels, spec.input));
    y.Reshape(image_shape(spec.outputs, spec.output));
    w.Reshape(weights);
    b.Reshape({spec.outputs});
    x.set_layout(layout);
    y.set_layout(layout);
    Fill(x, low, 1);
    Fill(w, -1, 2);
    Fill(b, -1, 3);
  }

  Values Float32(Blob& image, Blob& weights, bool with_bias) {
    Spec exact = spec;
    exact.has_bias = with_bias;
    OnednnConvolution(exact).Forward(image.data(), weights.data(), with_bias ? b.data() : Tensor(),
                                     y.data());
    return ListOf(y);
  }
  Values Int8() {
    const auto product = Int8Product::OfConvolution(spec);
    if (!product) return {};
    product->Forward(x.data(), w.data(), b.data(), y.data());
    return ListOf(y);
  }
};

// Replaces each value by half a step of its row's scale, plus the value's magnitude if
// `keeps_values`.
void Widen(Blob& blob, bool keeps_values) {
  Tensor values = blob.data().contiguous().clone();
  const int64_t rows = blob.shape(0), size = blob.count() / rows;
  for (int64_t row = 0; row < rows; ++row) {
    float* first = values.data_ptr() + row * size;
    float largest = 0;
    for (int64_t i = 0; i < size; ++i) largest = std::max(largest, std::fabs(first[i]));
    const float half = largest / 127 / 2;
    for (int64_t i = 0; i < size; ++i) first[i] = keeps_values ? std::fabs(first[i]) + half : half;
  }
  blob.data().copy_(values);
}

// The largest error of each value of y if x and w are rounded by up to half a step: |x| dw + dx
// (|w| + dw).
Values Bounds(Case& from) {
  Case wide(from.spec, from.low, from.layout), narrow(from.spec, from.low, from.layout);
  Widen(wide.x, true);     // |x| + dx
  Widen(wide.w, true);     // |w| + dw
  Widen(narrow.x, false);  // dx
  Widen(narrow.w, false);  // dw
  Values all = wide.Float32(wide.x, narrow.w, false);
  const Values rest = wide.Float32(narrow.x, wide.w, false);
  for (size_t i = 0; i < all.size(); ++i) all[i] += rest[i];
  return all;
}

Spec SpecOf(int64_t channels, int64_t outputs, int64_t group, int64_t kernel, int64_t stride) {
  const int64_t side = 9, pad = kernel / 2, out = (side + 2 * pad - kernel) / stride + 1;
  return {3,          channels,         outputs,          group,      {side, side},
          {out, out}, {kernel, kernel}, {stride, stride}, {pad, pad}, {1, 1},
          true};
}

const std::vector<Spec> kSpecs = {
    SpecOf(3, 96, 1, 5, 2),  SpecOf(16, 32, 1, 1, 1),  SpecOf(96, 64, 2, 5, 1),
    SpecOf(48, 20, 1, 3, 1), SpecOf(64, 160, 1, 3, 2), SpecOf(1, 20, 1, 5, 1),
};

TEST(Int8Product, ErrorIsWithinHalfAStepOfEachFactor) {
  if (!Int8Product::IsSupported()) GTEST_SKIP() << "oneDNN finds no VNNI";
  for (const Spec& spec : kSpecs) {
    for (const float low : {0.f, -1.f}) {
      for (const Layout layout : {Layout::kChannelsLast, Layout::kContiguous}) {
        Case sample(spec, low, layout);
        const Values exact = sample.Float32(sample.x, sample.w, true), rounded = sample.Int8();
        ASSERT_EQ(rounded.size(), exact.size()) << "no kernel for " << spec.channels;
        const Values bounds = Bounds(sample);
        double largest = 0;
        for (size_t i = 0; i < exact.size(); ++i) {
          const float error = std::fabs(exact[i] - rounded[i]);
          // allows 0.1 % more, because the sums are float32
          ASSERT_LE(error, 1.001f * bounds[i] + 1e-5f) << spec.channels << ", " << low << ", " << i;
          largest = std::max<double>(largest, error);
        }
        EXPECT_GT(largest, 0) << "nothing was rounded";
      }
    }
  }
}

// The bits of a result must not depend on the other images of a batch, on its size or on the number
// of threads.
TEST(Int8Product, AnImagesResultFollowsFromThatImageAlone) {
  for (const Spec& spec : kSpecs) {
    Case batch(spec, -1, Layout::kChannelsLast);
    // The first image has no negative values, so without the other images it is computed as uint8.
    const int64_t size = batch.x.count() / spec.batch;
    for (int64_t i = 0; i < size; ++i) batch.x.data_ptr()[i] = std::fabs(batch.x.data_ptr()[i]);
    const Values together = batch.Int8();
    if (together.empty()) GTEST_SKIP() << "oneDNN finds no VNNI";
    const int before = ThreadCount();
    SetThreadCount(before == 1 ? 2 : 1);
    EXPECT_EQ(batch.Int8(), together);
    SetThreadCount(before);
    const size_t part = together.size() / static_cast<size_t>(spec.batch);
    for (int64_t image = 0; image < spec.batch; ++image) {
      Spec alone_spec = spec;
      alone_spec.batch = 1;
      Case alone(alone_spec, 0, Layout::kChannelsLast);
      std::memcpy(alone.x.data_ptr(), batch.x.data_ptr() + image * size,
                  static_cast<size_t>(size) * sizeof(float));
      const auto* begin = together.data() + static_cast<size_t>(image) * part;
      EXPECT_EQ(alone.Int8(), Values(begin, begin + part)) << spec.channels << ", " << image;
    }
  }
}

TEST(Int8Product, AnImageThatIsNotFiniteHasNanAndTheOthersAreUnchanged) {
  Case sample(kSpecs[1], 0, Layout::kChannelsLast);
  const Values before = sample.Int8();
  if (before.empty()) GTEST_SKIP() << "oneDNN finds no VNNI";
  sample.x.data_ptr()[5] = std::nanf("");
  const Values after = sample.Int8();
  const size_t part = before.size() / 3;
  for (size_t i = 0; i < before.size(); ++i) {
    if (i < part) {
      EXPECT_TRUE(std::isnan(after[i])) << i;
    } else {
      ASSERT_EQ(after[i], before[i]) << i;
    }
  }
}

TEST(Int8Product, MatricesAreMultipliedRowByRow) {
  const int64_t rows = 5, inputs = 300, outputs = 70;
  const auto product = Int8Product::OfMatrices({rows, inputs, outputs});
  if (!product) GTEST_SKIP() << "oneDNN finds no VNNI";
  Blob x({rows, inputs}), w({outputs, inputs}), y({rows, outputs});
  // The largest value of each row is 127, so the scale is 1 and integers up to 127 are exact.
  for (int64_t i = 0; i < x.count(); ++i) {
    x.data_ptr()[i] = i % inputs == 0 ? 127 : static_cast<float>(i * 7 % 128);
  }
  for (int64_t i = 0; i < w.count(); ++i) {
    w.data_ptr()[i] = i % inputs == 0 ? -127 : static_cast<float>(i * 5 % 255 - 127);
  }
  product->Forward(x.data(), w.data(), {}, y.data());
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t output = 0; output < outputs; ++output) {
      float sum = 0;
      for (int64_t i = 0; i < inputs; ++i) {
        sum += x.data_ptr()[row * inputs + i] * w.data_ptr()[output * inputs + i];
      }
      ASSERT_EQ(y.data_ptr()[row * outputs + output], sum) << row << ", " << output;
    }
  }
}

TEST(Int8Product, ReadsWeightsOnceUntilTheyAreForgotten) {
  const auto product = Int8Product::OfMatrices({1, 16, 16});
  if (!product) GTEST_SKIP() << "oneDNN finds no VNNI";
  Blob x({1, 16}), w({16, 16}), y({1, 16});
  constexpr float kSum = 16 * 127 * 127;
  x.data().fill_(127);
  w.data().fill_(127);
  product->Forward(x.data(), w.data(), {}, y.data());
  EXPECT_EQ(y.data_ptr()[0], kSum);
  w.data().fill_(254);
  product->Forward(x.data(), w.data(), {}, y.data());
  EXPECT_EQ(y.data_ptr()[0], kSum);
  product->ForgetWeights();
  product->Forward(x.data(), w.data(), {}, y.data());
  EXPECT_EQ(y.data_ptr()[0], 2 * kSum);
}

TEST(Int8Product, AnImageOfZerosGivesTheBias) {
  Case sample(kSpecs[1], -1, Layout::kChannelsLast);
  const int64_t size = sample.x.count() / 3;
  std::fill_n(sample.x.data_ptr() + size, size, 0.f);
  const Values y = sample.Int8();
  if (y.empty()) GTEST_SKIP() << "oneDNN finds no VNNI";
  const size_t part = y.size() / 3, pixels = part / 32;
  for (size_t i = 0; i < part; ++i) {
    ASSERT_EQ(y[part + i], sample.b.data_ptr()[i / pixels]) << i;
  }
}

TEST(Int8Product, AnOutputOfZeroWeightsGivesItsBias) {
  Case sample(kSpecs[3], -1, Layout::kContiguous);
  const int64_t size = sample.w.count() / 20;
  std::fill_n(sample.w.data_ptr() + 7 * size, size, 0.f);
  const Values y = sample.Int8();
  if (y.empty()) GTEST_SKIP() << "oneDNN finds no VNNI";
  const size_t pixels = y.size() / 3 / 20;
  for (size_t image = 0; image < 3; ++image) {
    for (size_t i = 0; i < pixels; ++i) {
      ASSERT_EQ(y[(image * 20 + 7) * pixels + i], sample.b.data_ptr()[7]) << image << ", " << i;
    }
  }
}

TEST(Int8Product, AnInfiniteValueMakesItsImageNan) {
  for (const float value : {HUGE_VALF, -HUGE_VALF}) {
    Case sample(kSpecs[1], -1, Layout::kChannelsLast);
    const Values before = sample.Int8();
    if (before.empty()) GTEST_SKIP() << "oneDNN finds no VNNI";
    sample.x.data_ptr()[sample.x.count() - 1] = value;
    const Values after = sample.Int8();
    const size_t part = before.size() / 3;
    EXPECT_TRUE(std::equal(after.begin(), after.begin() + 2 * part, before.begin()));
    EXPECT_TRUE(
        std::all_of(after.begin() + 2 * part, after.end(), [](float y) { return std::isnan(y); }));
  }
}

// Shapes with odd numbers of channels, and groups of one channel.
TEST(Int8Product, OddShapesAreWithinTheBoundsOrLeftToFloat32) {
  if (!Int8Product::IsSupported()) GTEST_SKIP() << "oneDNN finds no VNNI";
  int computed = 0;
  for (const Spec& spec : {SpecOf(5, 7, 1, 3, 1), SpecOf(7, 1, 1, 1, 2), SpecOf(5, 5, 5, 3, 1),
                           SpecOf(6, 9, 3, 5, 2), SpecOf(1, 1, 1, 1, 1), SpecOf(33, 17, 1, 3, 2)}) {
    Case sample(spec, -1, Layout::kChannelsLast);
    const Values exact = sample.Float32(sample.x, sample.w, true), rounded = sample.Int8();
    if (rounded.empty()) continue;
    ++computed;
    const Values bounds = Bounds(sample);
    ASSERT_EQ(rounded.size(), exact.size());
    for (size_t i = 0; i < exact.size(); ++i) {
      ASSERT_LE(std::fabs(exact[i] - rounded[i]), 1.001f * bounds[i] + 1e-5f)
          << spec.channels << " to " << spec.outputs << ", " << i;
    }
  }
  EXPECT_GT(computed, 0) << "no kernel for any of them";
}

// If the largest value of a row is 127, integers up to 127 are exact.
TEST(Int8Product, MatricesOfAnySizeAreExactOrLeftToFloat32) {
  if (!Int8Product::IsSupported()) GTEST_SKIP() << "oneDNN finds no VNNI";
  int computed = 0;
  for (const Int8Product::Matrices& sizes : std::vector<Int8Product::Matrices>{
           {1, 1, 1}, {1, 1, 5}, {2, 3, 1}, {3, 17, 33}, {1, 1000, 3}}) {
    const auto product = Int8Product::OfMatrices(sizes);
    if (!product) continue;
    ++computed;
    Blob x({sizes.rows, sizes.inputs}), w({sizes.outputs, sizes.inputs}), b({sizes.outputs}),
        y({sizes.rows, sizes.outputs});
    for (int64_t i = 0; i < x.count(); ++i) {
      x.data_ptr()[i] = static_cast<float>(i % sizes.inputs == 0 ? -127 : i * 11 % 255 - 127);
    }
    for (int64_t i = 0; i < w.count(); ++i) {
      w.data_ptr()[i] = static_cast<float>(i % sizes.inputs == 0 ? 127 : i * 5 % 255 - 127);
    }
    for (int64_t i = 0; i < b.count(); ++i) b.data_ptr()[i] = static_cast<float>(i);
    product->Forward(x.data(), w.data(), b.data(), y.data());
    for (int64_t row = 0; row < sizes.rows; ++row) {
      for (int64_t output = 0; output < sizes.outputs; ++output) {
        float sum = static_cast<float>(output);
        for (int64_t i = 0; i < sizes.inputs; ++i) {
          sum += x.data_ptr()[row * sizes.inputs + i] * w.data_ptr()[output * sizes.inputs + i];
        }
        ASSERT_EQ(y.data_ptr()[row * sizes.outputs + output], sum)
            << sizes.rows << ", " << sizes.inputs << ", " << sizes.outputs;
      }
    }
  }
  EXPECT_GT(computed, 0) << "no kernel for any of them";
}

}  // namespace
}  // namespace hearth::caffe
