// The windows of a convolution or im2col: kernel, stride, padding and dilation per spatial axis.
#pragma once

#include <cstdint>
#include <vector>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

struct Window {
  std::vector<int64_t> kernel, stride, pad, dilation;
};

// Reads the repeated fields (one value for all axes, or one per axis) or the *_h and *_w forms of
// two-dimensional windows. Throws kInvalidArgument naming the field and the counts.
Window ReadWindow(const ConvolutionParameter& param, int64_t spatial_axes);

}  // namespace hearth::caffe
