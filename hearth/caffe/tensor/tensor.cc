#include "hearth/caffe/tensor/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/tensor/device_ops.h"
#include "hearth/caffe/tensor/strided_loop.h"
#include "hearth/caffe/tensor/tensor_error.h"

namespace hearth::caffe {
namespace {

// The size of a cache line, and of the largest vector register (AVX-512).
constexpr size_t kCacheLine = 64;

std::atomic<int64_t> bytes_taken{0};

int64_t CountOf(const Shape& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

// Row-major strides. As in PyTorch, an axis of size 0 counts as size 1, because a stride of 0 would
// mean a repeated value.
Shape RowMajor(const Shape& sizes) {
  Shape strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(1, sizes[i]);
  }
  return strides;
}

[[noreturn]] void ThrowNoMemory(size_t bytes) {
  throw TensorError(true, fmt::format("out of memory: tried to allocate {} bytes", bytes));
}

// calloc returns zeros, and large allocations use no pages until they are written. It aligns only
// to 16 bytes, so an additional cache line is allocated. aligned_alloc requires a multiple of the
// alignment.
std::shared_ptr<void> TakeBytes(size_t bytes, bool zeros, float** values) {
  const size_t rounded = (std::max<size_t>(bytes, 1) + kCacheLine - 1) / kCacheLine * kCacheLine;
  void* memory =
      zeros ? std::calloc(rounded + kCacheLine, 1) : std::aligned_alloc(kCacheLine, rounded);
  if (memory == nullptr) ThrowNoMemory(bytes);
  std::shared_ptr<void> owner(memory, std::free);
  const auto address = reinterpret_cast<uintptr_t>(memory);
  *values = reinterpret_cast<float*>((address + kCacheLine - 1) / kCacheLine * kCacheLine);
  bytes_taken += static_cast<int64_t>(bytes);
  return owner;
}

Tensor Taken(Shape sizes, bool zeros) {
  float* values = nullptr;
  std::shared_ptr<void> owner =
      TakeBytes(static_cast<size_t>(CountOf(sizes)) * sizeof(float), zeros, &values);
  return Tensor::Over(values, std::move(sizes), std::move(owner));
}

// Replaces the size that is -1, if any, with the size that makes the product `count`.
Shape Inferred(Shape sizes, int64_t count) {
  const auto open = std::find(sizes.begin(), sizes.end(), -1);
  if (open != sizes.end()) {
    *open = 1;
    const int64_t known = CountOf(sizes);
    *open = known == 0 ? 0 : count / known;
  }
  Require(CountOf(sizes) == count, ErrorCode::kInternal,
          "{} values cannot be viewed as a tensor of shape [{}]", count, fmt::join(sizes, ", "));
  return sizes;
}

// Returns the strides with which memory of the given sizes and strides can be viewed with the sizes
// `wanted`; nullopt if that needs a copy. Like PyTorch's computeStride, starts from the last axis:
// it groups the memory's axes into contiguous runs, and the wanted axes must fill each run exactly.
std::optional<Shape> StridesFor(const Shape& wanted, const Shape& sizes, const Shape& strides) {
  if (CountOf(wanted) == 0) return RowMajor(wanted);
  Shape found(wanted.size(), 1);
  size_t axis = wanted.size();
  for (size_t i = sizes.size(); i > 0;) {
    // A run of axes that are contiguous in memory.
    int64_t run = 1, stride = 1;
    bool begun = false;
    for (; i > 0; --i) {
      if (sizes[i - 1] == 1) continue;
      if (!begun) stride = strides[i - 1];
      if (begun && strides[i - 1] != stride * run) break;
      begun = true;
      run *= sizes[i - 1];
    }
    // Assigns wanted axes to this run, from the last one on. Axes of size 1 fit into any run.
    int64_t seen = 1;
    for (; axis > 0 && (seen < run || wanted[axis - 1] == 1); --axis) {
      found[axis - 1] = stride * seen;
      seen *= wanted[axis - 1];
    }
    if (seen != run) return std::nullopt;
  }
  return axis == 0 || CountOf(wanted) == 1 ? std::optional(found) : std::nullopt;
}

// The strides of `from` after broadcasting it to the sizes of `to`. As in NumPy, axes are compared
// from the last one on; for an axis that is missing or has size 1, a stride of 0 repeats the
// values.
Shape RepeatedStrides(const Tensor& to, const Tensor& from) {
  const Shape sizes = from.sizes(), given = from.strides(), wanted = to.sizes();
  Shape strides(wanted.size(), 0);
  bool fits = sizes.size() <= wanted.size();
  for (size_t i = 0; fits && i < sizes.size(); ++i) {
    const size_t axis = wanted.size() - sizes.size() + i;
    fits = sizes[i] == wanted[axis] || sizes[i] == 1;
    strides[axis] = sizes[i] == 1 ? 0 : given[i];
  }
  Require(fits, ErrorCode::kInternal, "a tensor of shape [{}] cannot be broadcast to [{}]",
          fmt::join(sizes, ", "), fmt::join(wanted, ", "));
  return strides;
}

// Calls row(to, stride, from, stride, count) for each row of `to`, with `from` broadcast to it.
template <typename Row>
const Tensor& Combine(const Tensor& to, const Tensor& from, Row row) {
  StridedLoop({to.sizes(), to.strides(), RepeatedStrides(to, from)}, to.data_ptr(), from.data_ptr(),
              row);
  return to;
}

}  // namespace

int64_t TensorBytesTaken() { return bytes_taken; }

Tensor Tensor::Empty(Shape sizes) { return Taken(std::move(sizes), false); }

Tensor Tensor::Zeros(Shape sizes) { return Taken(std::move(sizes), true); }

Tensor Tensor::Over(float* values, Shape sizes, std::shared_ptr<void> owner) {
  Tensor tensor;
  tensor.values_ = values;
  tensor.owner_ = std::move(owner);
  tensor.strides_ = RowMajor(sizes);
  tensor.sizes_ = std::move(sizes);
  return tensor;
}

Tensor Tensor::Copy(const std::vector<float>& values) {
  Tensor tensor = Empty({static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.values_);
  return tensor;
}

int64_t Tensor::Axis(int64_t axis) const {
  const int64_t axes = dim();
  Require(axis >= -axes && axis < axes, ErrorCode::kInternal, "a tensor of {} axes has no axis {}",
          axes, axis);
  return axis < 0 ? axis + axes : axis;
}

int64_t Tensor::size(int64_t axis) const {
  return on_host() ? sizes_[static_cast<size_t>(Axis(axis))]
                   : sizes()[static_cast<size_t>(Axis(axis))];
}

int64_t Tensor::stride(int64_t axis) const {
  return on_host() ? strides_[static_cast<size_t>(Axis(axis))]
                   : strides()[static_cast<size_t>(Axis(axis))];
}

int64_t Tensor::numel() const { return CountOf(on_host() ? sizes_ : sizes()); }

bool Tensor::is_channels_last() const {
  if (dim() != 4) return false;
  const Shape s = sizes(), at = strides();
  // The strides of the axes N, C, H, W in memory that is N x H x W x C.
  const Shape wanted{s[1] * s[2] * s[3], 1, s[3] * s[1], s[1]};
  for (size_t i = 0; i < 4; ++i) {
    if (s[i] != 1 && at[i] != wanted[i]) return false;
  }
  return true;
}

Tensor Tensor::WithView(float* values, Shape sizes, Shape strides) const {
  Tensor tensor;
  tensor.values_ = values;
  tensor.owner_ = owner_;
  tensor.sizes_ = std::move(sizes);
  tensor.strides_ = std::move(strides);
  return tensor;
}

// Returns an undefined tensor if the memory's order does not allow this view.
Tensor Tensor::HostView(Shape sizes) const {
  sizes = Inferred(std::move(sizes), CountOf(sizes_));
  if (is_contiguous()) {
    Shape strides = RowMajor(sizes);
    return WithView(values_, std::move(sizes), std::move(strides));
  }
  std::optional<Shape> strides = StridesFor(sizes, sizes_, strides_);
  if (!strides) return {};
  return WithView(values_, std::move(sizes), *std::move(strides));
}

Tensor Tensor::view(Shape sizes) const {
  if (!on_host()) return device::Viewed(*this, HEARTH_OP_view, sizes);
  Tensor tensor = HostView(sizes);
  Require(tensor.defined(), ErrorCode::kInternal,
          "a tensor of shape [{}] and strides [{}] has no view of shape [{}]",
          fmt::join(sizes_, ", "), fmt::join(strides_, ", "), fmt::join(sizes, ", "));
  return tensor;
}

Tensor Tensor::reshape(Shape sizes) const {
  if (!on_host()) return device::Viewed(*this, HEARTH_OP_reshape, std::move(sizes));
  Tensor tensor = HostView(sizes);
  return tensor.defined() ? tensor : clone().view(std::move(sizes));
}

Tensor Tensor::slice(int64_t axis, int64_t begin, int64_t end, int64_t step) const {
  axis = Axis(axis);
  if (!on_host()) return device::Viewed(*this, HEARTH_OP_slice, {axis, begin, end, step});
  const auto i = static_cast<size_t>(axis);
  // Rounded up, because the last step may go beyond `end`.
  const int64_t count = (end - begin + step - 1) / step;
  Require(begin >= 0 && begin <= end && end <= sizes_[i], ErrorCode::kInternal,
          "positions {} to {} are outside axis {} of shape [{}]", begin, end, axis,
          fmt::join(sizes_, ", "));
  Tensor tensor = *this;
  tensor.values_ += begin * strides_[i];
  tensor.sizes_[i] = count;
  tensor.strides_[i] *= step;
  return tensor;
}

Tensor Tensor::narrow(int64_t axis, int64_t begin, int64_t count) const {
  return slice(axis, begin, begin + count, 1);
}

Tensor Tensor::select(int64_t axis, int64_t index) const {
  axis = Axis(axis);
  if (!on_host()) return device::Viewed(*this, HEARTH_OP_select, {axis, index});
  Tensor tensor = narrow(axis, index, 1);
  tensor.sizes_.erase(tensor.sizes_.begin() + axis);
  tensor.strides_.erase(tensor.strides_.begin() + axis);
  return tensor;
}

Tensor Tensor::transpose(int64_t a, int64_t b) const {
  a = Axis(a);
  b = Axis(b);
  if (!on_host()) return device::Viewed(*this, HEARTH_OP_transpose, {a, b});
  Tensor tensor = *this;
  std::swap(tensor.sizes_[static_cast<size_t>(a)], tensor.sizes_[static_cast<size_t>(b)]);
  std::swap(tensor.strides_[static_cast<size_t>(a)], tensor.strides_[static_cast<size_t>(b)]);
  return tensor;
}

Tensor Tensor::permute(const Shape& axes) const {
  if (!on_host()) return device::Viewed(*this, HEARTH_OP_permute, axes);
  Tensor tensor = *this;
  for (size_t i = 0; i < axes.size(); ++i) {
    tensor.sizes_[i] = size(axes[i]);
    tensor.strides_[i] = stride(axes[i]);
  }
  return tensor;
}

Tensor Tensor::expand(const Shape& sizes) const {
  if (!on_host()) return device::Viewed(*this, HEARTH_OP_expand, sizes);
  Tensor repeated = WithView(values_, sizes, RowMajor(sizes));
  repeated.strides_ = RepeatedStrides(repeated, *this);
  return repeated;
}

Tensor Tensor::unsqueeze(int64_t axis) const {
  const int64_t position = axis < 0 ? axis + dim() + 1 : axis;
  if (!on_host()) return device::Viewed(*this, HEARTH_OP_unsqueeze, {position});
  Tensor tensor = *this;
  // The new axis has size 1, so its stride is never used.
  tensor.sizes_.insert(tensor.sizes_.begin() + position, 1);
  tensor.strides_.insert(tensor.strides_.begin() + position, 1);
  return tensor;
}

Tensor Tensor::squeeze(int64_t axis) const {
  axis = Axis(axis);
  if (!on_host()) return device::Viewed(*this, HEARTH_OP_squeeze, {axis});
  return size(axis) == 1 ? select(axis, 0) : *this;
}

std::vector<Tensor> Tensor::chunk(int64_t chunks, int64_t axis) const {
  std::vector<Tensor> parts;
  const int64_t count = size(axis) / chunks;
  for (int64_t i = 0; i < chunks; ++i) parts.push_back(narrow(axis, i * count, count));
  return parts;
}

bool Tensor::is_contiguous() const {
  const Shape s = sizes(), at = strides();
  int64_t stride = 1;
  for (size_t i = s.size(); i-- > 0;) {
    if (s[i] == 0) return true;
    if (s[i] != 1 && at[i] != stride) return false;
    stride *= s[i];
  }
  return true;
}

const Tensor& Tensor::copy_(const Tensor& from) const {
  if (!on_host() || !from.on_host()) return device::Copy(*this, from);
  return Combine(*this, from, CopyRow);
}

const Tensor& Tensor::zero_() const { return fill_(0); }

const Tensor& Tensor::fill_(double value) const {
  if (!on_host()) return device::Fill(*this, value);
  // `number` is a tensor without axes, which is broadcast to all values.
  float number = static_cast<float>(value);
  return Combine(*this, Over(&number, {}), CopyRow);
}

const Tensor& Tensor::add_(const Operand& other, double factor) const {
  if (!on_host()) {
    device::add_out(*this, *this, other, factor);
    return *this;
  }
  const AddRow row{static_cast<float>(factor)};
  if (!other.is_number()) return Combine(*this, other.tensor(), row);
  float number = static_cast<float>(other.number());
  return Combine(*this, Over(&number, {}), row);
}

const Tensor& Tensor::mul_(const Operand& factor) const {
  if (!on_host()) {
    device::mul_out(*this, *this, factor);
    return *this;
  }
  if (!factor.is_number()) return Combine(*this, factor.tensor(), MultiplyRow);
  float number = static_cast<float>(factor.number());
  return Combine(*this, Over(&number, {}), MultiplyRow);
}

Tensor Tensor::clone() const {
  if (!on_host()) return device::Viewed(*this, HEARTH_OP_clone, {});
  Tensor copy = Empty(sizes_);
  copy.copy_(*this);
  return copy;
}

Tensor Tensor::contiguous() const {
  if (is_contiguous()) return *this;
  return on_host() ? clone() : device::Viewed(*this, HEARTH_OP_contiguous, {});
}

}  // namespace hearth::caffe
