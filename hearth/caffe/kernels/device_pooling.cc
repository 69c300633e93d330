#include "hearth/caffe/kernels/device_pooling.h"

#include <ATen/ATen.h>

namespace hearth::caffe {
namespace {

// ATen's rule: rounded up, no window begins behind the picture and its padding.
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
  const bool padding = 2 * rows.pad <= rows.kernel && 2 * columns.pad <= columns.kernel;
  if (method == PoolingParameter::STOCHASTIC || !padding) return std::nullopt;
  if (!fits(true) && !fits(false)) return std::nullopt;
  DevicePooling pooling;
  pooling.is_max_ = method == PoolingParameter::MAX;
  pooling.rounds_up_ = fits(true);
  pooling.kernel_ = {rows.kernel, columns.kernel};
  pooling.stride_ = {rows.stride, columns.stride};
  pooling.pad_ = {rows.pad, columns.pad};
  return pooling;
}

void DevicePooling::Forward(const at::Tensor& x, at::Tensor& y, at::Tensor& chosen) const {
  if (is_max_) {
    chosen = at::empty({0}, x.options().dtype(at::kLong));
    at::max_pool2d_with_indices_out(y, chosen, x, kernel_, stride_, pad_, /*dilation=*/1,
                                    rounds_up_);
  } else {
    at::avg_pool2d_out(y, x, kernel_, stride_, pad_, rounds_up_, /*count_include_pad=*/true);
  }
}

void DevicePooling::Backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& chosen,
                             at::Tensor& dx) const {
  if (is_max_) {
    at::max_pool2d_with_indices_backward_out(dx, dy, x, kernel_, stride_, pad_, /*dilation=*/1,
                                             rounds_up_, chosen);
  } else {
    at::avg_pool2d_backward_out(dx, dy, x, kernel_, stride_, pad_, rounds_up_,
                                /*count_include_pad=*/true, c10::nullopt);
  }
}

}  // namespace hearth::caffe
