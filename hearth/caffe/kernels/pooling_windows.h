#pragma once

#include <algorithm>
#include <cstdint>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// The windows of a pooling layer along one axis.
struct PoolingAxis {
  int64_t inputs = 0, outputs = 0;
  int64_t kernel = 1, stride = 1, pad = 0;

  // Inputs [begin, end) of a window.
  struct Span {
    int64_t begin, end;
  };

  // Reads the axis with `name` 'h' or 'w'. Throws kInvalidArgument if the fields contradict each
  // other.
  static PoolingAxis Read(const PoolingParameter& param, char name, int64_t inputs);

  // Returns the part of window i that is inside the image; empty (begin >= end) if there is none.
  Span Clipped(int64_t i) const {
    const int64_t begin = i * stride - pad;
    return {std::max<int64_t>(begin, 0), std::min(begin + kernel, inputs)};
  }
  // Returns the length of window i including padding, for the divisor of an average.
  int64_t PaddedSize(int64_t i) const {
    const int64_t begin = i * stride - pad;
    return std::min(begin + kernel, inputs + pad) - begin;
  }
  // Returns the divisor of the sum over a window. It counts padding, and is at least 1, so that an
  // empty window averages to 0.
  static float Divisor(const PoolingAxis& rows, int64_t row, const PoolingAxis& columns,
                       int64_t column) {
    return static_cast<float>(std::max<int64_t>(1, rows.PaddedSize(row)) *
                              std::max<int64_t>(1, columns.PaddedSize(column)));
  }
};

}  // namespace hearth::caffe
