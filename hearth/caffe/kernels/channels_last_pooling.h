#pragma once

#include <cstdint>

#include "hearth/caffe/kernels/pooling_windows.h"

namespace hearth::caffe {

// Pooling of one channels-last (NHWC) image, with vectors of channels in the innermost loop.
// Thread-safe.
struct ChannelsLastPooling {
  PoolingAxis rows, columns;
  int64_t channels = 0;

  int64_t inputs() const { return rows.inputs * columns.inputs * channels; }
  int64_t outputs() const { return rows.outputs * columns.outputs * channels; }

  // The largest value of each window, and its pixel (row * width + column; -1: empty window, whose
  // value is -FLT_MAX). Among equal values, the first.
  void Max(const float* x, float* y, int32_t* chosen) const;
  void Average(const float* x, float* y) const;

  // Gradients, which replace dx. `chosen`: as from Max.
  void GradientAt(const float* dy, const int32_t* chosen, float* dx) const;
  void AverageGradient(const float* dy, float* dx) const;

 private:
  struct Block;
  // f(block, its vector types) for each window and, inside it, each block of channels.
  template <typename Function>
  void ForEachBlock(Function f) const;
};

}  // namespace hearth::caffe
