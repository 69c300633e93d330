#pragma once

#include <cstdint>

#include "hearth/caffe/kernels/pooling_windows.h"

namespace hearth::caffe {

// Pooling of one plane of an image: the rows x columns of one channel. Thread-safe. An input's
// index is row * width + column; -1 stands for an empty window.
struct PlanePooling {
  PoolingAxis rows, columns;

  int64_t inputs() const { return rows.inputs * columns.inputs; }
  int64_t outputs() const { return rows.outputs * columns.outputs; }

  // Finds the largest value of each window (the first one in a tie) and its index. As in Caffe, an
  // empty window has value -FLT_MAX.
  void Max(const float* x, float* y, int32_t* argmax) const;
  void Average(const float* x, float* y) const;
  // For each window, draws one of its values with a probability proportional to the value.
  // `randoms` contains one number in [0, 1) per window. Returns the drawn values (0 for an empty
  // window) and their indices.
  void Draw(const float* x, const float* randoms, float* y, int32_t* drawn) const;
  // Returns the expected values of Draw().
  void Expected(const float* x, float* y) const;

  // Gradients, which overwrite dx. `indices` is a result of Max or Draw.
  void GradientAt(const float* dy, const int32_t* indices, float* dx) const;
  void AverageGradient(const float* dy, float* dx) const;

 private:
  struct Window;
  // Calls f(window) for each window, in the order of the outputs.
  template <typename Function>
  void ForEachWindow(Function f) const;
  // Calls f(index) for each input of the window.
  template <typename Function>
  void ForEachInput(const Window& window, Function f) const;
};

}  // namespace hearth::caffe
