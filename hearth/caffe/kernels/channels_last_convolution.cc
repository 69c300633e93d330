#include "hearth/caffe/kernels/channels_last_convolution.h"

#include <algorithm>

#include "hearth/caffe/kernels/bias_sum.h"
#include "hearth/caffe/kernels/matrix_product.h"
#include "hearth/caffe/tensor/device_ops.h"
#include "hearth/caffe/tensor/parallel.h"

namespace hearth::caffe {
namespace {

constexpr int64_t kBlock = 16;  // block size of oneDNN
// Values per thread in gathered windows, which fit in a core's cache.
constexpr int64_t kChunk = 256'000;
constexpr int64_t kLeastChannels = 8;  // with fewer channels, runs are too short to gather quickly

int64_t RoundedUp(int64_t n) { return (n + kBlock - 1) / kBlock * kBlock; }

int64_t ImagesPerChunk(int64_t values_per_image) {
  return std::max<int64_t>(1, kChunk / values_per_image);
}

Tensor Rows(const float* values, int64_t rows, int64_t columns) {
  return Tensor::Over(const_cast<float*>(values), {rows, columns});
}

}  // namespace

bool ChannelsLastConvolution::Pays(const Spec& spec) {
  if (spec.bfloat16 || spec.group != 1 || spec.dilation != std::vector<int64_t>{1, 1}) return false;
  // True if less than 60 % of the values in oneDNN's blocks are used. LeNet's second convolution,
  // of 20 channels and 50 outputs, uses 49 % of 32 x 64.
  const int64_t blocks = RoundedUp(spec.channels) * RoundedUp(spec.outputs);
  return spec.channels >= kLeastChannels && spec.channels * spec.outputs * 5 < blocks * 3;
}

ChannelsLastConvolution::ChannelsLastConvolution(const Spec& spec)
    : spec_(spec),
      positions_(spec.output[0] * spec.output[1]),
      window_(spec.kernel[0] * spec.kernel[1] * spec.channels) {}

// Calls f for each chunk of the batch. Allocates the buffers of all threads before they start,
// because each thread uses the buffer with its ThreadNumber(). A batch that fits in one chunk runs
// on the calling thread, and its matrix product then uses all threads.
template <typename Function>
void ChannelsLastConvolution::ForEachChunk(Function f) {
  const int64_t most = std::min(spec_.batch, ImagesPerChunk(positions_ * window_));
  const int64_t threads = ThreadCount();
  if (!columns_.defined() || columns_.size(0) < threads) {
    columns_ = Tensor::Empty({threads, most * positions_, window_});
    sums_ = Tensor::Empty({threads, spec_.outputs, window_});
  }
  ParallelFor(0, (spec_.batch + most - 1) / most, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      f(i * most, std::min(most, spec_.batch - i * most), ThreadNumber());
    }
  });
}

// With channels last, the values of one row of a window are contiguous, both in the image and in
// the windows' matrix, whose order is kernel row, kernel column, channel. `columns` advances by a
// kernel row even where the window is outside the image; f is not called there.
template <typename Image, typename Columns, typename Function>
void ChannelsLastConvolution::ForEachRun(Image* image, Columns* columns, Function f) const {
  const int64_t height = spec_.input[0], width = spec_.input[1], channels = spec_.channels;
  for (int64_t oh = 0; oh < spec_.output[0]; ++oh) {
    for (int64_t ow = 0; ow < spec_.output[1]; ++ow) {
      const int64_t left = ow * spec_.stride[1] - spec_.pad[1];
      const int64_t from = std::max<int64_t>(0, left);
      const int64_t to = std::min(width, left + spec_.kernel[1]);
      for (int64_t a = 0; a < spec_.kernel[0]; ++a, columns += spec_.kernel[1] * channels) {
        const int64_t row = oh * spec_.stride[0] - spec_.pad[0] + a;
        if (row < 0 || row >= height || from >= to) continue;
        f(image + (row * width + from) * channels, columns + (from - left) * channels,
          (to - from) * channels);
      }
    }
  }
}

void ChannelsLastConvolution::Gather(const float* image, float* columns) const {
  // The runs never write the parts of windows outside the image, so these are zeroed first. Without
  // such parts, the runs write every value.
  const bool padded = spec_.pad[0] > 0 || spec_.pad[1] > 0 ||
                      (spec_.output[0] - 1) * spec_.stride[0] + spec_.kernel[0] > spec_.input[0] ||
                      (spec_.output[1] - 1) * spec_.stride[1] + spec_.kernel[1] > spec_.input[1];
  if (padded) std::fill_n(columns, positions_ * window_, 0.f);
  ForEachRun(image, columns,
             [](const float* values, float* to, int64_t count) { std::copy_n(values, count, to); });
}

// The inverse of Gather(). Where windows overlap, their values are added.
void ChannelsLastConvolution::Scatter(const float* columns, float* image) const {
  std::fill_n(image, spec_.input[0] * spec_.input[1] * spec_.channels, 0.f);
  ForEachRun(image, columns,
             [](float* to, const float* values, int64_t count) { AddRows(values, 1, count, to); });
}

// columns [images * positions, window] = dy [images * positions, outputs] w [outputs, window]. The
// dx of an image is the sum of its columns, each added where its window was.
void ChannelsLastConvolution::BackwardData(const Tensor& dy, const Tensor& w, Tensor& dx) {
  // Reorders the weights from Caffe's outputs x channels x kernel to the windows' order. Every call
  // does so, because the weights change in every iteration.
  if (!weights_.defined()) weights_ = Tensor::Empty({spec_.outputs, window_});
  weights_.view({spec_.outputs, spec_.kernel[0], spec_.kernel[1], spec_.channels})
      .copy_(w.permute({0, 2, 3, 1}));
  const float* gradients = dy.data_ptr();
  float* images = dx.data_ptr();
  const int64_t image = spec_.input[0] * spec_.input[1] * spec_.channels;
  ForEachChunk([&](int64_t first, int64_t count, int64_t thread) {
    Tensor columns = columns_[thread].narrow(0, 0, count * positions_);
    Multiply(
        Rows(gradients + first * positions_ * spec_.outputs, count * positions_, spec_.outputs),
        weights_, {}, columns);
    for (int64_t n = 0; n < count; ++n) {
      Scatter(columns.data_ptr() + n * positions_ * window_, images + (first + n) * image);
    }
  });
}

// dw [outputs, window] = dy^T [outputs, images * positions] columns [images * positions, window],
// summed over the chunks. Each thread sums its chunks, then the threads' sums are added in the
// order of the threads, so that equal runs have equal bits.
void ChannelsLastConvolution::BackwardWeights(const Tensor& x, const Tensor& dy, float beta,
                                              Tensor& dw) {
  const float* images = x.data_ptr();
  const float* gradients = dy.data_ptr();
  const int64_t image = spec_.input[0] * spec_.input[1] * spec_.channels;
  // Nonzero if the thread has written its sum, which is uninitialized before. Not a vector<bool>,
  // because several threads would write to the same byte.
  std::vector<char> used(ThreadCount());
  ForEachChunk([&](int64_t first, int64_t count, int64_t thread) {
    Tensor columns = columns_[thread].narrow(0, 0, count * positions_);
    for (int64_t n = 0; n < count; ++n) {
      Gather(images + (first + n) * image, columns.data_ptr() + n * positions_ * window_);
    }
    const float* rows = gradients + first * positions_ * spec_.outputs;
    Tensor sums = sums_[thread];
    AddProduct(used[thread], Rows(rows, count * positions_, spec_.outputs).t(), columns, sums);
    used[thread] = 1;
  });
  for (size_t thread = 0; thread < used.size(); ++thread) {
    if (!used[thread]) continue;
    const auto at_thread = static_cast<int64_t>(thread);
    const Tensor sum = sums_[at_thread]
                           .view({spec_.outputs, spec_.kernel[0], spec_.kernel[1], spec_.channels})
                           .permute({0, 3, 1, 2});
    // If beta is 0, dw may be uninitialized, so the first sum overwrites it.
    beta == 0 ? dw.copy_(sum) : dw.add_(sum);
    beta = 1;
  }
}

}  // namespace hearth::caffe
