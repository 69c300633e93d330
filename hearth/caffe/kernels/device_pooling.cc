#include "hearth/caffe/kernels/device_pooling.h"

namespace hearth::caffe {
namespace {

// Returns ATen's number of windows along an axis. When rounding up, ATen drops a last window that
// would begin after the image and its leading padding.
int64_t AtenOutputs(const PoolingAxis& axis, bool rounds_up) {
  const int64_t room = axis.inputs + 2 * axis.pad - axis.kernel;
  if (room < 0) return 0;
  const int64_t outputs = (room + (rounds_up ? axis.stride - 1 : 0)) / axis.stride + 1;
  const bool last_is_outside = (outputs - 1) * axis.stride >= axis.inputs + axis.pad;
  return outputs - (rounds_up && last_is_outside ? 1 : 0);
}

}  // namespace

std::optional<DevicePooling> DevicePooling::Of(PoolingParameter::PoolMethod method,
                                               const PoolingAxis& rows,
                                               const PoolingAxis& columns) {
  const auto fits = [&](bool rounds_up) {
    return AtenOutputs(rows, rounds_up) == rows.outputs &&
           AtenOutputs(columns, rounds_up) == columns.outputs;
  };
  // ATen rejects padding larger than half of the kernel.
  const bool padding = 2 * rows.pad <= rows.kernel && 2 * columns.pad <= columns.kernel;
  if (method == PoolingParameter::STOCHASTIC || !padding) return std::nullopt;
  // If there is padding, Caffe drops a last window that would begin after the image, in either
  // rounding mode. Its number of windows may therefore differ from both of ATen's. If ATen yields
  // Caffe's number in one of the rounding modes, the windows are the same as Caffe's.
  if (!fits(true) && !fits(false)) return std::nullopt;
  DevicePooling pooling;
  pooling.is_max_ = method == PoolingParameter::MAX;
  pooling.window_ = {{rows.kernel, columns.kernel},
                     {rows.stride, columns.stride},
                     {rows.pad, columns.pad},
                     fits(true)};
  return pooling;
}

void DevicePooling::Forward(const Tensor& x, Tensor& y, Tensor& chosen) const {
  if (is_max_) {
    chosen = device::max_pool2d_out(y, x, window_);
  } else {
    device::avg_pool2d_out(y, x, window_);
  }
}

void DevicePooling::Backward(const Tensor& dy, const Tensor& x, const Tensor& chosen,
                             Tensor& dx) const {
  if (is_max_) {
    device::max_pool2d_backward_out(dx, dy, x, chosen, window_);
  } else {
    device::avg_pool2d_backward_out(dx, dy, x, window_);
  }
}

}  // namespace hearth::caffe
