#include "hearth/caffe/kernels/window.h"

#include <algorithm>
#include <string_view>

#include "hearth/base/error.h"
#include "hearth/caffe/tensor/shape_count.h"

namespace hearth::caffe {
namespace {

// As in Caffe, a single value applies to all axes. The _h and _w fields exist only for images.
std::vector<int64_t> PerAxis(std::string_view name, const std::vector<uint32_t>& values,
                             int64_t axes, int64_t fallback) {
  const auto count = static_cast<int64_t>(values.size());
  Require(count <= 1 || count == axes, ErrorCode::kInvalidArgument,
          "{} has {} values, but the bottom has {} spatial axes: set one value, or one per axis",
          name, count, axes);
  // `fallback` is Caffe's default for a field that is not set.
  if (count == 0) return std::vector<int64_t>(axes, fallback);
  if (count == 1) return std::vector<int64_t>(axes, values[0]);
  return {values.begin(), values.end()};
}

void RequireTwoAxes(std::string_view name, int64_t axes, size_t repeated) {
  Require(axes == 2, ErrorCode::kInvalidArgument,
          "{0}_h and {0}_w are for 2 spatial axes, but the bottom has {1}", name, axes);
  Require(repeated == 0, ErrorCode::kInvalidArgument, "set either {0} or {0}_h and {0}_w", name);
}

}  // namespace

Window ReadWindow(const ConvolutionParameter& param, int64_t spatial_axes) {
  Window window;
  if (param.has_kernel_h() || param.has_kernel_w()) {
    RequireTwoAxes("kernel", spatial_axes, param.kernel_size().size());
    window.kernel = {param.kernel_h(), param.kernel_w()};
  } else {
    Require(!param.kernel_size().empty() || spatial_axes == 0, ErrorCode::kInvalidArgument,
            "set kernel_size");
    window.kernel = PerAxis("kernel_size", param.kernel_size(), spatial_axes, 0);
  }
  if (param.has_stride_h() || param.has_stride_w()) {
    RequireTwoAxes("stride", spatial_axes, param.stride().size());
    window.stride = {param.stride_h(), param.stride_w()};
  } else {
    window.stride = PerAxis("stride", param.stride(), spatial_axes, 1);
  }
  if (param.has_pad_h() || param.has_pad_w()) {
    RequireTwoAxes("pad", spatial_axes, param.pad().size());
    window.pad = {param.pad_h(), param.pad_w()};
  } else {
    window.pad = PerAxis("pad", param.pad(), spatial_axes, 0);
  }
  window.dilation = PerAxis("dilation", param.dilation(), spatial_axes, 1);
  for (int64_t i = 0; i < spatial_axes; ++i) {
    Require(window.kernel[i] > 0 && window.stride[i] > 0 && window.dilation[i] > 0,
            ErrorCode::kInvalidArgument,
            "kernel {}, stride {} and dilation {} of spatial axis {} must all be above 0",
            window.kernel[i], window.stride[i], window.dilation[i], i);
    // These numbers are bounded, so that products of two of them, as in OutputSize(), fit in 64
    // bits.
    Require(std::max({window.kernel[i], window.stride[i], window.pad[i], window.dilation[i]}) <=
                kMaxBlobValues,
            ErrorCode::kInvalidArgument,
            "kernel {}, stride {}, pad {} and dilation {} of spatial axis {} must not be above {}",
            window.kernel[i], window.stride[i], window.pad[i], window.dilation[i], i,
            kMaxBlobValues);
  }
  return window;
}

}  // namespace hearth::caffe
