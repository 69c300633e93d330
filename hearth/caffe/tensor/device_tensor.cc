// Properties and operations of tensors in a device's memory; they call the device library.
#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/tensor/device_arguments.h"

namespace hearth::caffe {
namespace {

using device::Made;
using device::ValueOf;

template <typename... Arguments>
Tensor Result(HearthDeviceOperation operation, const Arguments&... arguments) {
  return device::New(operation, ValueOf(arguments)...);
}

// Copies the list, which the library reuses in this thread's next call.
Shape Integers(HearthDeviceOperation operation, const Tensor& tensor) {
  const HearthDeviceValue list = CallDevice(operation, {ValueOf(tensor)}).values[0];
  return {list.integers, list.integers + list.count};
}

// Runs an operation in place: the tensor is passed as the output and as the first input.
template <typename... Arguments>
const Tensor& InPlace(HearthDeviceOperation operation, const Tensor& tensor,
                      const Arguments&... arguments) {
  CallDevice(operation, {ValueOf(tensor), ValueOf(tensor), ValueOf(arguments)...});
  return tensor;
}

// Runs an operation that changes its first argument and returns nothing.
template <typename... Arguments>
const Tensor& OnTensor(HearthDeviceOperation operation, const Tensor& tensor,
                       const Arguments&... arguments) {
  CallDevice(operation, {ValueOf(tensor), ValueOf(arguments)...});
  return tensor;
}

}  // namespace

Tensor Tensor::Adopt(void* handle) {
  Tensor tensor;
  // Copies of the tensor share the handle; the last one releases it.
  tensor.device_ = std::shared_ptr<void>(handle, ReleaseDeviceTensor);
  return tensor;
}

Tensor Tensor::ZerosOn(const Device& device, const Shape& sizes) {
  return Result(HEARTH_OP_zeros, sizes, Operand(static_cast<int>(device.kind)),
                Operand(device.index));
}

Shape Tensor::sizes() const { return on_host() ? sizes_ : Integers(HEARTH_OP_sizes, *this); }

Shape Tensor::strides() const { return on_host() ? strides_ : Integers(HEARTH_OP_strides, *this); }

int64_t Tensor::dim() const {
  return static_cast<int64_t>(on_host() ? sizes_.size() : sizes().size());
}

Device Tensor::device() const {
  if (on_host()) return {};
  const Shape facts = Integers(HEARTH_OP_device, *this);
  return {static_cast<HearthDeviceKind>(facts[0]), static_cast<int>(facts[1])};
}

bool Tensor::is_alias_of(const Tensor& other) const {
  if (on_host() != other.on_host()) return false;
  // Memory that the caller owns can only be compared by its address.
  if (on_host()) return owner_ ? owner_ == other.owner_ : values_ == other.values_;
  return CallDevice(HEARTH_OP_is_alias_of, {ValueOf(*this), ValueOf(other)}).values[0].integer != 0;
}

float* Tensor::DevicePointer() const {
  if (!defined()) return nullptr;
  return static_cast<float*>(CallDevice(HEARTH_OP_data_ptr, {ValueOf(*this)}).values[0].pointer);
}

double Tensor::item() const {
  Require(numel() == 1, ErrorCode::kInternal, "a tensor of {} values is not a single number",
          numel());
  if (on_host()) return *values_;
  return CallDevice(HEARTH_OP_item, {ValueOf(*this)}).values[0].number;
}

Tensor Tensor::abs() const { return Made(HEARTH_OP_abs, *this); }
Tensor Tensor::exp() const { return Made(HEARTH_OP_exp, *this); }
Tensor Tensor::logical_not() const { return Made(HEARTH_OP_logical_not, *this); }
Tensor Tensor::reciprocal() const { return Made(HEARTH_OP_reciprocal, *this); }
Tensor Tensor::sigmoid() const { return Made(HEARTH_OP_sigmoid, *this); }
Tensor Tensor::sign() const { return Made(HEARTH_OP_sign, *this); }
Tensor Tensor::sqrt() const { return Made(HEARTH_OP_sqrt, *this); }
Tensor Tensor::square() const { return Made(HEARTH_OP_square, *this); }
Tensor Tensor::ge(double value) const { return *this >= value; }
Tensor Tensor::pow(double exponent) const { return Made(HEARTH_OP_pow, *this, Operand(exponent)); }
Tensor Tensor::mm(const Tensor& other) const { return Made(HEARTH_OP_mm, *this, other); }

Tensor Tensor::clamp_min(const Operand& least) const {
  return Made(HEARTH_OP_clamp_min, *this, least);
}

Tensor Tensor::mean(int64_t axis, bool keep) const {
  return Made(HEARTH_OP_mean, *this, Shape{axis}, Operand(keep));
}

Tensor Tensor::sum() const { return sum(Shape{}); }

Tensor Tensor::sum(const Shape& axes, bool keep) const {
  return Made(HEARTH_OP_sum, *this, axes, Operand(keep));
}

Tensor Tensor::flip(int64_t axis) const { return Result(HEARTH_OP_flip, *this, Operand(axis)); }

Tensor Tensor::gather(int64_t axis, const Tensor& index) const {
  return Result(HEARTH_OP_gather, *this, Operand(axis), index);
}

Tensor Tensor::index_select(int64_t axis, const Tensor& index) const {
  return Result(HEARTH_OP_index_select, *this, Operand(axis), index);
}

Tensor Tensor::masked_fill(const Tensor& mask, const Operand& value) const {
  // The device library has this operation only in place.
  Tensor copy = clone();
  copy.masked_fill_(mask, value);
  return copy;
}

Tensor Tensor::scatter_add(int64_t axis, const Tensor& index, const Tensor& values) const {
  Tensor copy = clone();
  copy.scatter_add_(axis, index, values);
  return copy;
}

Tensor Tensor::to(HearthDeviceDtype type) const {
  return Result(HEARTH_OP_to, *this, Operand(static_cast<int>(type)));
}

Tensor Tensor::to_channels_last() const { return Result(HEARTH_OP_channels_last, *this); }

std::pair<Tensor, Tensor> Tensor::sort(bool stable, int64_t axis, bool descending) const {
  const DeviceResults results =
      CallDevice(HEARTH_OP_sort, {ValueOf(*this), ValueOf(Operand(stable)), ValueOf(Operand(axis)),
                                  ValueOf(Operand(descending))});
  return {Adopt(results.values[0].tensor), Adopt(results.values[1].tensor)};
}

const Tensor& Tensor::addcdiv_(const Tensor& a, const Tensor& b, double factor) const {
  return InPlace(HEARTH_OP_addcdiv, *this, a, b, Operand(factor));
}

const Tensor& Tensor::addcmul_(const Tensor& a, const Tensor& b, double factor) const {
  return InPlace(HEARTH_OP_addcmul, *this, a, b, Operand(factor));
}

const Tensor& Tensor::addmm_(const Tensor& a, const Tensor& b, double beta) const {
  return InPlace(HEARTH_OP_addmm, *this, a, b, Operand(beta));
}

const Tensor& Tensor::bitwise_and_(const Operand& other) const {
  return InPlace(HEARTH_OP_bitwise_and, *this, other);
}

const Tensor& Tensor::bitwise_xor_(const Operand& other) const {
  return InPlace(HEARTH_OP_bitwise_xor, *this, other);
}

const Tensor& Tensor::clamp_min_(const Operand& least) const {
  return InPlace(HEARTH_OP_clamp_min, *this, least);
}

const Tensor& Tensor::exp_() const { return InPlace(HEARTH_OP_exp, *this); }
const Tensor& Tensor::log1p_() const { return InPlace(HEARTH_OP_log1p, *this); }
const Tensor& Tensor::log_() const { return InPlace(HEARTH_OP_log, *this); }
const Tensor& Tensor::logical_not_() const { return InPlace(HEARTH_OP_logical_not, *this); }
const Tensor& Tensor::reciprocal_() const { return InPlace(HEARTH_OP_reciprocal, *this); }
const Tensor& Tensor::rsqrt_() const { return InPlace(HEARTH_OP_rsqrt, *this); }
const Tensor& Tensor::sigmoid_() const { return InPlace(HEARTH_OP_sigmoid, *this); }
const Tensor& Tensor::sqrt_() const { return InPlace(HEARTH_OP_sqrt, *this); }
const Tensor& Tensor::square_() const { return InPlace(HEARTH_OP_square, *this); }
const Tensor& Tensor::tanh_() const { return InPlace(HEARTH_OP_tanh, *this); }

const Tensor& Tensor::sub_(const Operand& other, double factor) const {
  device::sub_out(*this, *this, other, factor);
  return *this;
}

const Tensor& Tensor::index_add_(int64_t axis, const Tensor& index, const Tensor& values) const {
  return OnTensor(HEARTH_OP_index_add_, *this, Operand(axis), index, values);
}

const Tensor& Tensor::masked_fill_(const Tensor& mask, const Operand& value) const {
  return OnTensor(HEARTH_OP_masked_fill_, *this, mask, value);
}

const Tensor& Tensor::scatter_(int64_t axis, const Tensor& index, const Operand& values) const {
  return OnTensor(HEARTH_OP_scatter_, *this, Operand(axis), index, values);
}

const Tensor& Tensor::scatter_add_(int64_t axis, const Tensor& index, const Tensor& values) const {
  return OnTensor(HEARTH_OP_scatter_add_, *this, Operand(axis), index, values);
}

}  // namespace hearth::caffe
