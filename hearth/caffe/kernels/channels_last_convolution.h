#pragma once

#include <cstdint>

#include "hearth/caffe/kernels/onednn_convolution.h"

namespace hearth::caffe {

// Gradients of a convolution as matrix products, for channels-last (NHWC) images. Windows are
// gathered in runs along a row, so that few values are copied individually. One object belongs to
// one layer and its thread.
class ChannelsLastConvolution {
 public:
  using Spec = OnednnConvolution::Spec;

  // Returns true if this class is faster than oneDNN, which computes in blocks of 16 channels and
  // outputs. The class is faster if large parts of those blocks would be empty.
  static bool Pays(const Spec& spec);
  explicit ChannelsLastConvolution(const Spec& spec);

  const Spec& spec() const { return spec_; }
  // Shapes are those of OnednnConvolution; images have Layout::kChannelsLast.
  void BackwardData(const Tensor& dy, const Tensor& w, Tensor& dx);
  void BackwardWeights(const Tensor& x, const Tensor& dy, float beta, Tensor& dw);

 private:
  // Calls f(first image, number of images, thread) on several threads.
  template <typename Function>
  void ForEachChunk(Function f);
  // Calls f(values of an image, values of a window's row, count) for the parts of windows inside
  // the image. The windows' matrix is [positions, kernel height, kernel width, channels].
  template <typename Image, typename Columns, typename Function>
  void ForEachRun(Image* image, Columns* columns, Function f) const;
  void Gather(const float* image, float* columns) const;
  void Scatter(const float* columns, float* image) const;

  const Spec spec_;
  const int64_t positions_,
      window_;      // output positions per image and channel; values per window
  Tensor columns_;  // [threads, images of a chunk * positions, window]
  Tensor weights_;  // [outputs, window]
  Tensor sums_;     // [threads, outputs, window]
};

}  // namespace hearth::caffe
