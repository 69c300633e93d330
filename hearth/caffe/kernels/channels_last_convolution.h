// Gradients of a convolution by matrix products, for channels-last (NHWC) pictures. Its windows are
// gathered in runs of a row, so that few values are moved one by one. Belongs to one layer
// and its thread.
#pragma once

#include <cstdint>

#include "hearth/caffe/kernels/onednn_convolution.h"

namespace hearth::caffe {

class ChannelsLastConvolution {
 public:
  using Spec = OnednnConvolution::Spec;

  // Whether it is faster than oneDNN, which computes in blocks of 16 channels and outputs: it is if
  // much of those blocks would be empty.
  static bool Pays(const Spec& spec);
  explicit ChannelsLastConvolution(const Spec& spec);

  const Spec& spec() const { return spec_; }
  // Shapes as OnednnConvolution takes them; pictures in Layout::kChannelsLast.
  void BackwardData(const Tensor& dy, const Tensor& w, Tensor& dx);
  void BackwardWeights(const Tensor& x, const Tensor& dy, float beta, Tensor& dw);

 private:
  // f(first picture, number of pictures, thread), on several threads.
  template <typename Function>
  void ForEachChunk(Function f);
  // f(values of a picture, values of a row of a window, how many) for the parts of windows inside
  // the picture; the windows' matrix is [places, kernel height, kernel width, channels].
  template <typename Picture, typename Columns, typename Function>
  void ForEachRun(Picture* picture, Columns* columns, Function f) const;
  void Gather(const float* picture, float* columns) const;
  void Scatter(const float* columns, float* picture) const;

  const Spec spec_;
  const int64_t places_,
      window_;      // outputs per picture and channel; values of a window
  Tensor columns_;  // [threads, pictures of a chunk * places, window]
  Tensor weights_;  // [outputs, window]
  Tensor sums_;     // [threads, outputs, window]
};

}  // namespace hearth::caffe
