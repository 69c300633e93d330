#pragma once

#include <cstdint>
#include <vector>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// The windows of a convolution or im2col: kernel, stride, padding and dilation per spatial axis.
struct Window {
  std::vector<int64_t> kernel, stride, pad, dilation;

  // Returns the number of positions of the window along spatial axis i of length `input`; 0 if the
  // window does not fit.
  int64_t OutputSize(int64_t input, int64_t i) const {
    const int64_t room = input + 2 * pad[i] - Reach(i);
    return room < 0 ? 0 : room / stride[i] + 1;
  }
  // Returns the distance from the window's first to its last value along spatial axis i, inclusive.
  int64_t Reach(int64_t i) const { return dilation[i] * (kernel[i] - 1) + 1; }
};

// Reads the repeated fields (one value for all axes, or one per axis) or the *_h and *_w fields of
// two-dimensional windows. Throws kInvalidArgument naming the field and the counts.
Window ReadWindow(const ConvolutionParameter& param, int64_t spatial_axes);

}  // namespace hearth::caffe
