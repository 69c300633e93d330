// Operations on tensors in a device's memory, with the names and semantics of ATen's functions.
// Layers use them to compute on devices. For tensors on the host, they throw kInternal.
#pragma once

#include <array>
#include <tuple>
#include <type_traits>
#include <vector>

#include "hearth/caffe/tensor/tensor.h"

namespace hearth::caffe {

// A tensor or a number, as an argument of an operation.
class Operand {
 public:
  Operand(const Tensor& tensor) : tensor_(&tensor) {}  // NOLINT: converts
  template <typename Number, typename = std::enable_if_t<std::is_arithmetic_v<Number>>>
  Operand(Number number) : number_(static_cast<double>(number)) {  // NOLINT: converts
    if constexpr (std::is_integral_v<Number>) {
      value_ = {HearthDeviceValue::kInteger, 0, {.integer = static_cast<int64_t>(number)}};
    } else {
      value_ = {HearthDeviceValue::kNumber, 0, {.number = number_}};
    }
  }

  // The value to pass to the device library. Throws kInternal for a tensor in the host's memory.
  HearthDeviceValue value() const;
  bool is_number() const { return tensor_ == nullptr; }
  double number() const { return number_; }
  const Tensor& tensor() const { return *tensor_; }

 private:
  const Tensor* tensor_ = nullptr;
  double number_ = 0;
  HearthDeviceValue value_{};
};

Tensor operator+(const Tensor& a, const Operand& b);
Tensor operator+(double a, const Tensor& b);
Tensor operator-(const Tensor& a, const Operand& b);
Tensor operator-(double a, const Tensor& b);
Tensor operator-(const Tensor& x);
Tensor operator*(const Tensor& a, const Operand& b);
Tensor operator*(double a, const Tensor& b);
Tensor operator/(const Tensor& a, const Operand& b);
Tensor operator/(double a, const Tensor& b);
Tensor operator==(const Tensor& a, const Operand& b);
Tensor operator!=(const Tensor& a, const Operand& b);
Tensor operator<(const Tensor& a, const Operand& b);
Tensor operator<=(const Tensor& a, const Operand& b);
Tensor operator>(const Tensor& a, const Operand& b);
Tensor operator>=(const Tensor& a, const Operand& b);

namespace device {

// Functions for tensor.cc. Viewed() returns a view or a copy of `x`; the operation's other
// arguments are `integers`.
Tensor Viewed(const Tensor& x, HearthDeviceOperation operation, const Shape& integers);
const Tensor& Copy(const Tensor& to, const Tensor& from);
const Tensor& Fill(const Tensor& to, double value);

// Operations that write their result to `out`.
void abs_out(const Tensor& out, const Tensor& x);
void add_out(const Tensor& out, const Operand& a, const Operand& b, double factor = 1);
void addcmul_out(const Tensor& out, const Tensor& x, const Tensor& a, const Tensor& b);
void clamp_out(const Tensor& out, const Tensor& x, double least, double most);
void elu_out(const Tensor& out, const Tensor& x, double alpha);
void leaky_relu_out(const Tensor& out, const Tensor& x, double slope);
void leaky_relu_backward_out(const Tensor& out, const Tensor& dy, const Tensor& x, double slope);
void mean_out(const Tensor& out, const Tensor& x, int64_t axis, bool keep);
void mm_out(const Tensor& out, const Tensor& a, const Tensor& b);
void addmm_out(const Tensor& out, const Tensor& x, const Tensor& a, const Tensor& b);
void mul_out(const Tensor& out, const Operand& a, const Operand& b);
void pow_out(const Tensor& out, const Tensor& x, double exponent);
void sigmoid_out(const Tensor& out, const Tensor& x);
void sigmoid_backward_out(const Tensor& out, const Tensor& dy, const Tensor& y);
void sign_out(const Tensor& out, const Tensor& x);
void softmax_out(const Tensor& out, const Tensor& x, int64_t axis);
void softmax_backward_out(const Tensor& out, const Tensor& dy, const Tensor& y, int64_t axis);
void sub_out(const Tensor& out, const Operand& a, const Operand& b, double factor = 1);
void sum_out(const Tensor& out, const Tensor& x, int64_t axis);
void tanh_out(const Tensor& out, const Tensor& x);
void tanh_backward_out(const Tensor& out, const Tensor& dy, const Tensor& y);

// Operations that return a new tensor.
Tensor arange(int64_t count, const Tensor& like);  // of type HEARTH_LONG
Tensor bitwise_right_shift(const Tensor& x, int64_t bits);
Tensor full(const Shape& sizes, double value, const Tensor& like);
Tensor longs(const std::vector<int64_t>& values, const Device& device);  // of type HEARTH_LONG
Tensor logical_and(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor ones_like(const Tensor& like);
Tensor where(const Tensor& condition, const Operand& then, const Operand& otherwise);
Tensor zeros_like(const Tensor& like);
Tensor zeros_like(const Tensor& like, HearthDeviceDtype type);

// Operations of layers.
struct PoolWindow {
  std::array<int64_t, 2> kernel, stride, pad;
  bool rounds_up;
};
void avg_pool2d_out(const Tensor& y, const Tensor& x, const PoolWindow& window);
// Sums over the `size` x `size` window around each value.
Tensor sum_pool2d(const Tensor& x, int64_t size);
void avg_pool2d_backward_out(const Tensor& dx, const Tensor& dy, const Tensor& x,
                             const PoolWindow& window);
// Returns, for each value of `y`, the position in its plane of `x` from which the value was copied.
Tensor max_pool2d_out(const Tensor& y, const Tensor& x, const PoolWindow& window);
void max_pool2d_backward_out(const Tensor& dx, const Tensor& dy, const Tensor& x,
                             const Tensor& chosen, const PoolWindow& window);

// Window of a convolution, with one value per spatial axis.
struct ConvolutionWindow {
  std::vector<int64_t> stride, pad, dilation;
  bool transposed;
  int64_t group;
};
// `bias` may be undefined.
Tensor convolution(const Tensor& x, const Tensor& weight, const Tensor& bias,
                   const ConvolutionWindow& window);
// The gradients of x, weight and bias. Those that are not in `wanted` are undefined.
std::array<Tensor, 3> convolution_backward(const Tensor& dy, const Tensor& x, const Tensor& weight,
                                           const ConvolutionWindow& window,
                                           const std::array<bool, 3>& wanted);

// The result `y` of a batch normalization, and the results that its gradient needs.
struct BatchNorm {
  Tensor y, mean, inverse_deviation, reserve;
  int64_t implementation = 0;
};
// Writes the mean and the unbiased variance of this minibatch to `mean` and `variance`.
BatchNorm batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                     const Tensor& variance, double eps);
// The gradients of x, weight and bias of batch_norm() with eps 0, for values with mean 0 and
// variance 1.
std::array<Tensor, 3> batch_norm_backward(const BatchNorm& of, const Tensor& x, const Tensor& dy,
                                          const Tensor& weight, const Tensor& zeros,
                                          const Tensor& ones);

// Operations on lists of tensors.
using Tensors = std::vector<Tensor>;
void foreach_add_(const Tensors& to, const Tensors& values, double factor);
Tensors foreach_mul(const Tensors& values, double factor);
void foreach_mul_(const Tensors& values, double factor);
Tensors foreach_sign(const Tensors& values);
void foreach_sub_(const Tensors& from, const Tensors& values);
// The square root of the sum of squares, computed in double precision.
double norm(const Tensor& values);

}  // namespace device
}  // namespace hearth::caffe
