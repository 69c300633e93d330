#include "hearth/caffe/tensor/device_ops.h"

#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/tensor/device_arguments.h"

namespace hearth::caffe {

HearthDeviceValue Operand::value() const {
  if (is_number()) return value_;
  if (!tensor_->defined()) return {HearthDeviceValue::kNone, 0, {}};
  Require(!tensor_->on_host(), ErrorCode::kInternal,
          "an operation of a device needs tensors in its memory, but got one in the host's");
  // The handle is still owned by the tensor; the call only uses it.
  return {HearthDeviceValue::kTensor, 0, {.tensor = tensor_->handle()}};
}

namespace device {
namespace {

// Runs an operation that writes its result to its first argument.
template <typename... Arguments>
void Into(HearthDeviceOperation operation, const Tensor& out, const Arguments&... arguments) {
  CallDevice(operation, {ValueOf(Operand(out)), ValueOf(arguments)...});
}

// The handles of a list of tensors. Must exist until the call returns, because value() points to
// the handles.
class Handles {
 public:
  explicit Handles(const Tensors& tensors) {
    for (const Tensor& tensor : tensors) handles_.push_back(tensor.handle());
  }
  HearthDeviceValue value() const {
    return {HearthDeviceValue::kTensors,
            static_cast<int32_t>(handles_.size()),
            {.tensors = handles_.data()}};
  }

 private:
  std::vector<void*> handles_;
};

// Takes ownership of the handles in a list of results. Must run before the next call of the
// library, which reuses the array of the list.
Tensors Adopted(const HearthDeviceValue& list) {
  Tensors tensors;
  for (int32_t i = 0; i < list.count; ++i) tensors.push_back(Tensor::Adopt(list.tensors[i]));
  return tensors;
}

// Gradients that were not requested are returned undefined.
std::array<Tensor, 3> FirstThree(const DeviceResults& results) {
  std::array<Tensor, 3> tensors;
  for (size_t i = 0; i < 3; ++i) {
    if (results.values[i].type == HearthDeviceValue::kTensor) {
      tensors[i] = Tensor::Adopt(results.values[i].tensor);
    }
  }
  return tensors;
}

// Passes a whole number as an integer, because ATen rejects floating-point factors for integer
// tensors.
Operand Factor(double factor) {
  const auto whole = static_cast<int64_t>(factor);
  return static_cast<double>(whole) == factor ? Operand(whole) : Operand(factor);
}

Shape Pair(const std::array<int64_t, 2>& numbers) { return {numbers[0], numbers[1]}; }

}  // namespace

Tensor Viewed(const Tensor& x, HearthDeviceOperation operation, const Shape& integers) {
  return New(operation, ValueOf(Operand(x)), ValueOf(integers));
}

const Tensor& Copy(const Tensor& to, const Tensor& from) {
  if (to.on_host()) {
    // The library writes a dense array with the shape of `from`. So if `to` is not dense, the
    // values are copied through an array, and if `from` is broadcast, it is expanded first.
    const Tensor dense = to.is_contiguous() ? to : Tensor::Empty(to.sizes());
    const HearthDeviceValue memory{HearthDeviceValue::kPointer, 0, {.pointer = dense.data_ptr()}};
    const Tensor repeated = from.sizes() == to.sizes() ? from : from.expand(to.sizes());
    CallDevice(HEARTH_OP_to_host, {ValueOf(Operand(repeated)), memory});
    if (dense.data_ptr() != to.data_ptr()) to.copy_(dense);
  } else if (from.on_host()) {
    const Tensor dense = from.contiguous();
    const HearthDeviceValue memory{HearthDeviceValue::kPointer, 0, {.pointer = dense.data_ptr()}};
    CallDevice(HEARTH_OP_from_host, {ValueOf(Operand(to)), memory, ValueOf(dense.sizes())});
  } else {
    CallDevice(HEARTH_OP_copy_, {ValueOf(Operand(to)), ValueOf(Operand(from))});
  }
  return to;
}

const Tensor& Fill(const Tensor& to, double value) {
  CallDevice(HEARTH_OP_fill_, {ValueOf(Operand(to)), ValueOf(Operand(value))});
  return to;
}

void abs_out(const Tensor& out, const Tensor& x) { Into(HEARTH_OP_abs, out, x); }

void add_out(const Tensor& out, const Operand& a, const Operand& b, double factor) {
  Into(HEARTH_OP_add, out, a, b, Factor(factor));
}

void addcmul_out(const Tensor& out, const Tensor& x, const Tensor& a, const Tensor& b) {
  Into(HEARTH_OP_addcmul, out, x, a, b, Operand(1.0));
}

void clamp_out(const Tensor& out, const Tensor& x, double least, double most) {
  Into(HEARTH_OP_clamp, out, x, Operand(least), Operand(most));
}

void elu_out(const Tensor& out, const Tensor& x, double alpha) {
  Into(HEARTH_OP_elu, out, x, Operand(alpha));
}

void leaky_relu_out(const Tensor& out, const Tensor& x, double slope) {
  Into(HEARTH_OP_leaky_relu, out, x, Operand(slope));
}

void leaky_relu_backward_out(const Tensor& out, const Tensor& dy, const Tensor& x, double slope) {
  Into(HEARTH_OP_leaky_relu_backward, out, dy, x, Operand(slope));
}

void mean_out(const Tensor& out, const Tensor& x, int64_t axis, bool keep) {
  Into(HEARTH_OP_mean, out, x, Shape{axis}, Operand(keep));
}

void mm_out(const Tensor& out, const Tensor& a, const Tensor& b) { Into(HEARTH_OP_mm, out, a, b); }

void addmm_out(const Tensor& out, const Tensor& x, const Tensor& a, const Tensor& b) {
  Into(HEARTH_OP_addmm, out, x, a, b, Operand(1.0));
}

void mul_out(const Tensor& out, const Operand& a, const Operand& b) {
  Into(HEARTH_OP_mul, out, a, b);
}

void pow_out(const Tensor& out, const Tensor& x, double exponent) {
  Into(HEARTH_OP_pow, out, x, Operand(exponent));
}

void sigmoid_out(const Tensor& out, const Tensor& x) { Into(HEARTH_OP_sigmoid, out, x); }

void sigmoid_backward_out(const Tensor& out, const Tensor& dy, const Tensor& y) {
  Into(HEARTH_OP_sigmoid_backward, out, dy, y);
}

void sign_out(const Tensor& out, const Tensor& x) { Into(HEARTH_OP_sign, out, x); }

void softmax_out(const Tensor& out, const Tensor& x, int64_t axis) {
  Into(HEARTH_OP__softmax, out, x, Operand(axis));
}

void softmax_backward_out(const Tensor& out, const Tensor& dy, const Tensor& y, int64_t axis) {
  Into(HEARTH_OP__softmax_backward_data, out, dy, y, Operand(axis));
}

void sub_out(const Tensor& out, const Operand& a, const Operand& b, double factor) {
  Into(HEARTH_OP_sub, out, a, b, Factor(factor));
}

void sum_out(const Tensor& out, const Tensor& x, int64_t axis) {
  Into(HEARTH_OP_sum, out, x, Shape{axis}, Operand(false));
}

void tanh_out(const Tensor& out, const Tensor& x) { Into(HEARTH_OP_tanh, out, x); }

void tanh_backward_out(const Tensor& out, const Tensor& dy, const Tensor& y) {
  Into(HEARTH_OP_tanh_backward, out, dy, y);
}

Tensor arange(int64_t count, const Tensor& like) {
  return New(HEARTH_OP_arange, ValueOf(Operand(like)), ValueOf(Operand(count)));
}

Tensor bitwise_right_shift(const Tensor& x, int64_t bits) {
  return Made(HEARTH_OP_bitwise_right_shift, x, Operand(bits));
}

Tensor full(const Shape& sizes, double value, const Tensor& like) {
  return New(HEARTH_OP_full, ValueOf(Operand(like)), ValueOf(sizes), ValueOf(Operand(value)));
}

// `values` is in the host's memory and is copied to the device.
Tensor longs(const std::vector<int64_t>& values, const Device& device) {
  return New(HEARTH_OP_longs, ValueOf(values), ValueOf(Operand(int64_t{device.kind})),
             ValueOf(Operand(device.index)));
}

Tensor logical_and(const Tensor& a, const Tensor& b) { return Made(HEARTH_OP_logical_and, a, b); }

Tensor maximum(const Tensor& a, const Tensor& b) { return Made(HEARTH_OP_maximum, a, b); }

Tensor ones_like(const Tensor& like) { return full(like.sizes(), 1, like); }

Tensor where(const Tensor& condition, const Operand& then, const Operand& otherwise) {
  return New(HEARTH_OP_where, ValueOf(Operand(condition)), ValueOf(then), ValueOf(otherwise));
}

Tensor zeros_like(const Tensor& like) { return full(like.sizes(), 0, like); }

Tensor zeros_like(const Tensor& like, HearthDeviceDtype type) { return zeros_like(like).to(type); }

void avg_pool2d_out(const Tensor& y, const Tensor& x, const PoolWindow& window) {
  // The last argument makes avg_pool2d divide by the window's size including padding, as Caffe
  // does.
  Into(HEARTH_OP_avg_pool2d, y, x, Pair(window.kernel), Pair(window.stride), Pair(window.pad),
       Operand(window.rounds_up), Operand(false));
}

Tensor sum_pool2d(const Tensor& x, int64_t size) {
  // The sum is an average with divisor 1. Padding by half the window's size preserves the shape.
  return Made(HEARTH_OP_avg_pool2d, x, Shape{size, size}, Shape{1, 1}, Shape{size / 2, size / 2},
              Operand(false), Operand(true));
}

void avg_pool2d_backward_out(const Tensor& dx, const Tensor& dy, const Tensor& x,
                             const PoolWindow& window) {
  Into(HEARTH_OP_avg_pool2d_backward, dx, dy, x, Pair(window.kernel), Pair(window.stride),
       Pair(window.pad), Operand(window.rounds_up));
}

Tensor max_pool2d_out(const Tensor& y, const Tensor& x, const PoolWindow& window) {
  return New(HEARTH_OP_max_pool2d_with_indices, ValueOf(Operand(y)), ValueOf(Operand(x)),
             ValueOf(Pair(window.kernel)), ValueOf(Pair(window.stride)), ValueOf(Pair(window.pad)),
             ValueOf(Operand(window.rounds_up)));
}

void max_pool2d_backward_out(const Tensor& dx, const Tensor& dy, const Tensor& x,
                             const Tensor& chosen, const PoolWindow& window) {
  Into(HEARTH_OP_max_pool2d_with_indices_backward, dx, dy, x, chosen, Pair(window.kernel),
       Pair(window.stride), Pair(window.pad), Operand(window.rounds_up));
}

// From here on, the order of arguments matters, because device/layers.cc reads them by position.
Tensor convolution(const Tensor& x, const Tensor& weight, const Tensor& bias,
                   const ConvolutionWindow& w) {
  return New(HEARTH_OP_convolution, ValueOf(Operand(x)), ValueOf(Operand(weight)),
             ValueOf(Operand(bias)), ValueOf(w.stride), ValueOf(w.pad), ValueOf(w.dilation),
             ValueOf(Operand(w.transposed)), ValueOf(Operand(w.group)));
}

std::array<Tensor, 3> convolution_backward(const Tensor& dy, const Tensor& x, const Tensor& weight,
                                           const ConvolutionWindow& w,
                                           const std::array<bool, 3>& wanted) {
  const Shape mask{wanted[0], wanted[1], wanted[2]};
  return FirstThree(
      CallDevice(HEARTH_OP_convolution_backward,
                 {ValueOf(Operand(dy)), ValueOf(Operand(x)), ValueOf(Operand(weight)),
                  ValueOf(w.stride), ValueOf(w.pad), ValueOf(w.dilation),
                  ValueOf(Operand(w.transposed)), ValueOf(Operand(w.group)), ValueOf(mask)}));
}

BatchNorm batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                     const Tensor& variance, double eps) {
  const DeviceResults results =
      CallDevice(HEARTH_OP__batch_norm_impl_index,
                 {ValueOf(Operand(x)), ValueOf(Operand(weight)), ValueOf(Operand(bias)),
                  ValueOf(Operand(mean)), ValueOf(Operand(variance)), ValueOf(Operand(eps))});
  return {Tensor::Adopt(results.values[0].tensor), Tensor::Adopt(results.values[1].tensor),
          Tensor::Adopt(results.values[2].tensor), Tensor::Adopt(results.values[3].tensor),
          results.values[4].integer};
}

std::array<Tensor, 3> batch_norm_backward(const BatchNorm& of, const Tensor& x, const Tensor& dy,
                                          const Tensor& weight, const Tensor& zeros,
                                          const Tensor& ones) {
  return FirstThree(
      CallDevice(HEARTH_OP__batch_norm_impl_index_backward,
                 {ValueOf(Operand(of.implementation)), ValueOf(Operand(x)), ValueOf(Operand(dy)),
                  ValueOf(Operand(weight)), ValueOf(Operand(zeros)), ValueOf(Operand(ones)),
                  ValueOf(Operand(of.reserve))}));
}

void foreach_add_(const Tensors& to, const Tensors& values, double factor) {
  CallDevice(HEARTH_OP__foreach_add_,
             {Handles(to).value(), Handles(values).value(), ValueOf(Operand(factor))});
}

Tensors foreach_mul(const Tensors& values, double factor) {
  return Adopted(
      CallDevice(HEARTH_OP__foreach_mul, {Handles(values).value(), ValueOf(Operand(factor))})
          .values[0]);
}

void foreach_mul_(const Tensors& values, double factor) {
  CallDevice(HEARTH_OP__foreach_mul_, {Handles(values).value(), ValueOf(Operand(factor))});
}

Tensors foreach_sign(const Tensors& values) {
  return Adopted(CallDevice(HEARTH_OP__foreach_sign, {Handles(values).value()}).values[0]);
}

void foreach_sub_(const Tensors& from, const Tensors& values) {
  CallDevice(HEARTH_OP__foreach_sub_, {Handles(from).value(), Handles(values).value()});
}

double norm(const Tensor& values) {
  return CallDevice(HEARTH_OP_linalg_vector_norm, {ValueOf(Operand(values))}).values[0].number;
}

}  // namespace device

Tensor operator+(const Tensor& a, const Operand& b) {
  return device::Made(HEARTH_OP_add, Operand(a), b, Operand(1));
}
Tensor operator+(double a, const Tensor& b) { return b + a; }
Tensor operator-(const Tensor& a, const Operand& b) {
  return device::Made(HEARTH_OP_sub, Operand(a), b, Operand(1));
}
// One pass over the memory; -(b - a) would need two.
Tensor operator-(double a, const Tensor& b) {
  return device::Made(HEARTH_OP_sub, Operand(a), Operand(b), Operand(1));
}
Tensor operator-(const Tensor& x) { return device::Made(HEARTH_OP_neg, Operand(x)); }
Tensor operator*(const Tensor& a, const Operand& b) {
  return device::Made(HEARTH_OP_mul, Operand(a), b);
}
Tensor operator*(double a, const Tensor& b) { return b * a; }
Tensor operator/(const Tensor& a, const Operand& b) {
  return device::Made(HEARTH_OP_div, Operand(a), b);
}
Tensor operator/(double a, const Tensor& b) {
  return device::Made(HEARTH_OP_div, Operand(a), Operand(b));
}
Tensor operator==(const Tensor& a, const Operand& b) {
  return device::Made(HEARTH_OP_eq, Operand(a), b);
}
Tensor operator!=(const Tensor& a, const Operand& b) {
  return device::Made(HEARTH_OP_ne, Operand(a), b);
}
Tensor operator<(const Tensor& a, const Operand& b) {
  return device::Made(HEARTH_OP_lt, Operand(a), b);
}
Tensor operator<=(const Tensor& a, const Operand& b) {
  return device::Made(HEARTH_OP_le, Operand(a), b);
}
Tensor operator>(const Tensor& a, const Operand& b) {
  return device::Made(HEARTH_OP_gt, Operand(a), b);
}
Tensor operator>=(const Tensor& a, const Operand& b) {
  return device::Made(HEARTH_OP_ge, Operand(a), b);
}

}  // namespace hearth::caffe
