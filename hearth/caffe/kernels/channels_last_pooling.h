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

  // Finds the largest value of each window (the first one in a tie) and the index of its pixel,
  // row * width + column. An empty window has value -FLT_MAX and index -1.
  void Max(const float* x, float* y, int32_t* chosen) const;
  void Average(const float* x, float* y) const;

  // These functions overwrite dx with the gradient of Max() or Average(). `chosen` is the result of
  // Max().
  void GradientAt(const float* dy, const int32_t* chosen, float* dx) const;
  void AverageGradient(const float* dy, float* dx) const;

 private:
  struct Block;
  // Calls f(block, its vector types) for each window and, inside it, for each block of channels.
  template <typename Function>
  void ForEachBlock(Function f) const;
};

}  // namespace hearth::caffe
