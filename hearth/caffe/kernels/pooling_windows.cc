#include "hearth/caffe/kernels/pooling_windows.h"

#include <cmath>

#include "hearth/base/error.h"

namespace hearth::caffe {
namespace {

// Reads the fields of one axis: _h for rows, _w for columns. If either field of such a pair is set,
// the field for both axes is ignored.
void ReadFields(const PoolingParameter& param, bool rows, PoolingAxis* axis) {
  const bool has_kernel_hw = param.has_kernel_h() || param.has_kernel_w();
  Require(param.has_kernel_size() != has_kernel_hw, ErrorCode::kInvalidArgument,
          "pooling_param needs either kernel_size or kernel_h and kernel_w (or global_pooling)");
  axis->kernel = !has_kernel_hw ? param.kernel_size() : rows ? param.kernel_h() : param.kernel_w();
  const bool has_stride_hw = param.has_stride_h() || param.has_stride_w();
  axis->stride = !has_stride_hw ? param.stride() : rows ? param.stride_h() : param.stride_w();
  const bool has_pad_hw = param.has_pad_h() || param.has_pad_w();
  axis->pad = !has_pad_hw ? param.pad() : rows ? param.pad_h() : param.pad_w();
}

bool IsPadded(const PoolingParameter& param) {
  if (param.global_pooling()) return false;
  const bool has_pad_hw = param.has_pad_h() || param.has_pad_w();
  return has_pad_hw ? param.pad_h() > 0 || param.pad_w() > 0 : param.pad() > 0;
}

}  // namespace

PoolingAxis PoolingAxis::Read(const PoolingParameter& param, char name, int64_t inputs) {
  PoolingAxis axis;
  axis.inputs = inputs;
  if (param.global_pooling()) {
    Require(!param.has_kernel_size() && !param.has_kernel_h() && !param.has_kernel_w(),
            ErrorCode::kInvalidArgument, "global_pooling takes no kernel size");
    axis.kernel = inputs;
  } else {
    ReadFields(param, name == 'h', &axis);
  }
  Require(
      axis.kernel > 0 && axis.stride > 0 && axis.pad < axis.kernel, ErrorCode::kInvalidArgument,
      "kernel {}, stride {} and pad {} along {}: kernel and stride must be above 0, and the pad "
      "below the kernel",
      axis.kernel, axis.stride, axis.pad, name);
  Require(axis.pad == 0 || param.pool() != PoolingParameter::STOCHASTIC,
          ErrorCode::kInvalidArgument, "STOCHASTIC pooling takes no padding, not {}", axis.pad);
  const int64_t room = inputs + 2 * axis.pad - axis.kernel;
  const double steps = static_cast<double>(room) / static_cast<double>(axis.stride);
  const bool round_up = param.round_mode() == PoolingParameter::CEIL;
  // When rounding up, a kernel slightly larger than the image has one window, as in Caffe.
  axis.outputs = static_cast<int64_t>(round_up ? std::ceil(steps) : std::floor(steps)) + 1;
  Require(axis.outputs > 0, ErrorCode::kInvalidArgument,
          "kernel {} with pad {} does not fit into {} values along {}", axis.kernel, axis.pad,
          inputs, name);
  // With padding along either axis, Caffe drops a last window that would begin after the image.
  if (IsPadded(param) && (axis.outputs - 1) * axis.stride >= inputs + axis.pad) --axis.outputs;
  return axis;
}

}  // namespace hearth::caffe
