#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "hearth/caffe/tensor/device_api.h"

namespace hearth::caffe {

using Shape = std::vector<int64_t>;

// A device in the device library's terms. HEARTH_CPU is memory of the library on the host, which
// tests use.
struct Device {
  HearthDeviceKind kind = HEARTH_CPU;
  int index = 0;
  bool is_cpu() const { return kind == HEARTH_CPU; }
  bool is_cuda() const { return kind == HEARTH_CUDA; }
  bool operator==(const Device&) const = default;
};

class Operand;

// The arrays with which layers compute: float32 in the host's memory, or tensors of a device
// library in the device's memory. A tensor is a view. Copies of a tensor share the memory, which is
// freed with the last copy; const applies to the view, not to the values. Must be used by one
// thread at a time.
//
// Views, copies and sums work on the host and on devices; the operations in device_ops.h work only
// on devices. Failures throw TensorError, or hearth::Error if the caller passes invalid arguments.
class Tensor {
 public:
  Tensor() = default;
  // Tensors in the host's memory, row-major and aligned to cache lines.
  static Tensor Empty(Shape sizes);
  static Tensor Zeros(Shape sizes);
  // A view of the caller's memory. `owner`, if set, keeps the memory alive.
  static Tensor Over(float* values, Shape sizes, std::shared_ptr<void> owner = {});
  static Tensor ZerosOn(const Device& device, const Shape& sizes);
  static Tensor Copy(const std::vector<float>& values);

  bool defined() const { return values_ != nullptr || device_ != nullptr; }
  void reset() { *this = Tensor(); }
  bool on_host() const { return values_ != nullptr; }
  // The device that stores the tensor; Device() for a tensor on the host.
  Device device() const;
  // The device library's handle; null for a tensor on the host.
  void* handle() const { return device_.get(); }

  Shape sizes() const;
  Shape strides() const;
  int64_t dim() const;
  int64_t size(int64_t axis) const;
  int64_t stride(int64_t axis) const;
  int64_t numel() const;
  int64_t nbytes() const { return numel() * static_cast<int64_t>(sizeof(float)); }
  bool is_contiguous() const;
  // True if there are four axes, of which the second one varies fastest in memory.
  bool is_channels_last() const;
  bool is_alias_of(const Tensor& other) const;
  // The address of the first value; for a tensor on a device, in the device's memory.
  float* data_ptr() const { return values_ != nullptr ? values_ : DevicePointer(); }
  double item() const;

  // Views.
  Tensor view(Shape sizes) const;  // one size may be -1
  Tensor view_as(const Tensor& other) const { return view(other.sizes()); }
  Tensor reshape(Shape sizes) const;
  Tensor narrow(int64_t axis, int64_t begin, int64_t count) const;
  Tensor slice(int64_t axis, int64_t begin, int64_t end, int64_t step = 1) const;
  Tensor select(int64_t axis, int64_t index) const;
  Tensor operator[](int64_t index) const { return select(0, index); }
  Tensor t() const { return transpose(0, 1); }
  Tensor transpose(int64_t a, int64_t b) const;
  Tensor permute(const Shape& axes) const;
  Tensor expand(const Shape& sizes) const;
  Tensor unsqueeze(int64_t axis) const;
  Tensor squeeze(int64_t axis) const;
  Tensor flatten() const { return reshape({-1}); }
  // All values in the order of memory, as one axis. The tensor must be dense and on the host.
  Tensor in_memory_order() const { return WithView(values_, {numel()}, {1}); }
  std::vector<Tensor> chunk(int64_t chunks, int64_t axis) const;

  // Values.
  const Tensor& copy_(const Tensor& from) const;  // `from` has the same shape or is broadcast
  const Tensor& zero_() const;
  const Tensor& fill_(double value) const;
  const Tensor& add_(const Operand& other, double factor = 1) const;
  const Tensor& mul_(const Operand& factor) const;
  Tensor clone() const;  // row-major if on the host
  Tensor contiguous() const;

  // Only for tensors on devices: ATen's functions of the same names. device_ops.h has more.
  Tensor abs() const;
  Tensor clamp_min(const Operand& least) const;
  Tensor exp() const;
  Tensor flip(int64_t axis) const;
  Tensor gather(int64_t axis, const Tensor& index) const;
  Tensor ge(double value) const;
  Tensor index_select(int64_t axis, const Tensor& index) const;
  Tensor logical_not() const;
  Tensor masked_fill(const Tensor& mask, const Operand& value) const;
  Tensor mean(int64_t axis, bool keep) const;
  Tensor mm(const Tensor& other) const;
  Tensor pow(double exponent) const;
  Tensor reciprocal() const;
  Tensor scatter_add(int64_t axis, const Tensor& index, const Tensor& values) const;
  Tensor sigmoid() const;
  Tensor sign() const;
  Tensor sqrt() const;
  Tensor square() const;
  Tensor sum() const;
  Tensor sum(const Shape& axes, bool keep = false) const;
  Tensor sum(int64_t axis, bool keep = false) const { return sum(Shape{axis}, keep); }
  Tensor to(HearthDeviceDtype type) const;
  Tensor to_channels_last() const;
  std::pair<Tensor, Tensor> sort(bool stable, int64_t axis, bool descending) const;

  const Tensor& addcdiv_(const Tensor& a, const Tensor& b, double factor = 1) const;
  const Tensor& addcmul_(const Tensor& a, const Tensor& b, double factor = 1) const;
  const Tensor& addmm_(const Tensor& a, const Tensor& b, double beta = 1) const;
  const Tensor& bitwise_and_(const Operand& other) const;
  const Tensor& bitwise_xor_(const Operand& other) const;
  const Tensor& clamp_min_(const Operand& least) const;
  const Tensor& exp_() const;
  const Tensor& index_add_(int64_t axis, const Tensor& index, const Tensor& values) const;
  const Tensor& log1p_() const;
  const Tensor& log_() const;
  const Tensor& logical_not_() const;
  const Tensor& masked_fill_(const Tensor& mask, const Operand& value) const;
  const Tensor& reciprocal_() const;
  const Tensor& rsqrt_() const;
  const Tensor& scatter_(int64_t axis, const Tensor& index, const Operand& values) const;
  const Tensor& scatter_add_(int64_t axis, const Tensor& index, const Tensor& values) const;
  const Tensor& sigmoid_() const;
  const Tensor& sqrt_() const;
  const Tensor& square_() const;
  const Tensor& sub_(const Operand& other, double factor = 1) const;
  const Tensor& tanh_() const;

  // Takes ownership of a tensor that the device library returned.
  static Tensor Adopt(void* handle);

 private:
  int64_t Axis(int64_t axis) const;
  float* DevicePointer() const;
  Tensor WithView(float* values, Shape sizes, Shape strides) const;
  Tensor HostView(Shape sizes) const;

  float* values_ = nullptr;      // address of the first value in the host's memory
  std::shared_ptr<void> owner_;  // owner of values_; null if the caller owns the memory
  Shape sizes_, strides_;        // only for tensors on the host
  std::shared_ptr<void> device_;
};

// Bytes that host tensors have allocated in this process, for tests.
int64_t TensorBytesTaken();

}  // namespace hearth::caffe
