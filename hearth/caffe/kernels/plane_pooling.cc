#include "hearth/caffe/kernels/plane_pooling.h"

#include <algorithm>
#include <cfloat>

namespace hearth::caffe {

struct PlanePooling::Window {
  int64_t output;  // index of the output
  PoolingAxis::Span rows, columns;
  float divisor;  // divisor of an average
};

template <typename Function>
void PlanePooling::ForEachWindow(Function f) const {
  int64_t output = 0;
  for (int64_t row = 0; row < rows.outputs; ++row) {
    const PoolingAxis::Span span = rows.Clipped(row);
    for (int64_t column = 0; column < columns.outputs; ++column) {
      f(Window{output++, span, columns.Clipped(column),
               PoolingAxis::Divisor(rows, row, columns, column)});
    }
  }
}

template <typename Function>
void PlanePooling::ForEachInput(const Window& window, Function f) const {
  for (int64_t row = window.rows.begin; row < window.rows.end; ++row) {
    for (int64_t column = window.columns.begin; column < window.columns.end; ++column) {
      f(row * columns.inputs + column);
    }
  }
}

void PlanePooling::Max(const float* x, float* y, int32_t* argmax) const {
  ForEachWindow([&](const Window& window) {
    // Inputs are visited row by row, and only a larger one replaces the best, so the first of equal
    // values is chosen, as in Caffe.
    float best = -FLT_MAX;
    int64_t best_index = -1;
    ForEachInput(window, [&](int64_t index) {
      if (!(x[index] > best)) return;  // a NaN is never chosen
      best = x[index];
      best_index = index;
    });
    y[window.output] = best;
    argmax[window.output] = static_cast<int32_t>(best_index);
  });
}

void PlanePooling::Average(const float* x, float* y) const {
  ForEachWindow([&](const Window& window) {
    float sum = 0;
    ForEachInput(window, [&](int64_t index) { sum += x[index]; });
    y[window.output] = sum / window.divisor;
  });
}

// Stochastic pooling (Zeiler and Fergus 2013). The probability of choosing value x_i of a window is
// x_i / sum: the chosen value is the first at which the cumulative sum reaches the sum times a
// uniform random number. Values must not be negative, as after a ReLU. If all are 0, the first is
// chosen.
void PlanePooling::Draw(const float* x, const float* randoms, float* y, int32_t* drawn) const {
  ForEachWindow([&](const Window& window) {
    float sum = 0;
    ForEachInput(window, [&](int64_t index) { sum += x[index]; });
    const float threshold = randoms[window.output] * sum;
    float reached = 0;
    int64_t chosen = -1;
    ForEachInput(window, [&](int64_t index) {
      if (chosen >= 0 && !(reached < threshold)) return;
      chosen = index;
      reached += x[index];
    });
    y[window.output] = chosen < 0 ? 0 : x[chosen];
    drawn[window.output] = static_cast<int32_t>(chosen);
  });
}

// sum of x_i * x_i / sum, which weights each value by its probability.
void PlanePooling::Expected(const float* x, float* y) const {
  ForEachWindow([&](const Window& window) {
    float sum = 0, squares = 0;
    ForEachInput(window, [&](int64_t index) {
      sum += x[index];
      squares += x[index] * x[index];
    });
    y[window.output] = sum > 0 ? squares / sum : 0;
  });
}

void PlanePooling::GradientAt(const float* dy, const int32_t* indices, float* dx) const {
  std::fill_n(dx, inputs(), 0.f);
  for (int64_t i = 0; i < outputs(); ++i) {
    // An empty window has index -1, for which Caffe writes before the image.
    if (indices[i] >= 0) dx[indices[i]] += dy[i];
  }
}

void PlanePooling::AverageGradient(const float* dy, float* dx) const {
  std::fill_n(dx, inputs(), 0.f);
  ForEachWindow([&](const Window& window) {
    const float share = dy[window.output] / window.divisor;
    ForEachInput(window, [&](int64_t index) { dx[index] += share; });
  });
}

}  // namespace hearth::caffe
