#include "hearth/caffe/tensor/blob.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/tensor/device_ops.h"
#include "hearth/caffe/tensor/shape_count.h"
#include "hearth/caffe/tensor/tensor_error.h"

namespace hearth::caffe {
namespace {

int64_t CheckedCount(const Shape& shape) {
  Require(std::none_of(shape.begin(), shape.end(), [](int64_t dim) { return dim < 0; }),
          ErrorCode::kInvalidArgument, "invalid blob shape [{}]", fmt::join(shape, ", "));
  const std::optional<int64_t> count = CountOf(shape);
  Require(count.has_value(), ErrorCode::kResourceExhausted,
          "a blob of shape [{}] is larger than the limit of {} values", fmt::join(shape, ", "),
          kMaxBlobValues);
  return *count;
}

// Calls `take`, which may allocate the blob's memory. If memory is exhausted, the error names the
// blob's shape instead of the tensor library's message.
template <typename Take>
decltype(auto) TakeMemory(const Blob& blob, Take take) {
  try {
    return take();
  } catch (const TensorError& error) {
    if (!error.out_of_memory()) throw;
  }
  Throw(ErrorCode::kResourceExhausted, "out of memory: a blob of shape {} takes {} MB",
        blob.ShapeString(), blob.count() * static_cast<int64_t>(sizeof(float)) >> 20);
}

void RequireRoom(const Tensor& flat, int64_t count) {
  Require(flat.dim() == 1 && flat.is_contiguous() && flat.numel() >= count, ErrorCode::kInternal,
          "a blob of {} floats does not fit into a tensor of {} elements", count, flat.numel());
}

}  // namespace

void Blob::Reshape(Shape shape) {
  // The shape of a new blob is already {}, but it has no values yet, so the first Reshape({}) must
  // not return early.
  if (shape == shape_ && (count_ > 0 || !shape.empty())) return;
  // Computed before any member changes, so the blob is unchanged if this throws.
  const int64_t count = CheckedCount(shape);
  shape_ = std::move(shape);
  count_ = count;
  // The memory is kept. Views with the new shape are created on the next request.
  data_.DropViews();
  diff_.DropViews();
}

void Blob::set_layout(Layout layout) {
  layout_ = layout;
  data_.DropViews();
  diff_.DropViews();
}

int64_t Blob::count(int64_t start, int64_t end) const {
  if (end < 0) end = num_axes();
  Require(start >= 0 && start <= end && end <= num_axes(), ErrorCode::kInvalidArgument,
          "axes [{}, {}) are outside of a blob of shape {}", start, end, ShapeString());
  int64_t product = 1;
  for (int64_t axis = start; axis < end; ++axis) product *= shape_[axis];
  return product;
}

int64_t Blob::CanonicalAxis(int64_t axis) const {
  Require(axis >= -num_axes() && axis < num_axes(), ErrorCode::kInvalidArgument,
          "axis {} is outside of a blob of shape {}", axis, ShapeString());
  return axis < 0 ? axis + num_axes() : axis;
}

std::string Blob::ShapeString() const {
  std::string text;
  for (int64_t dim : shape_) text += fmt::format("{} ", dim);
  return text + fmt::format("({})", count_);
}

Tensor Blob::View(const Tensor& memory) const {
  const Tensor flat = memory.narrow(0, 0, count_);
  if (layout() == Layout::kContiguous) return flat.view(shape_);
  // The memory is N x H x W x C; the tensor has the axes N, C, H, W.
  return flat.view({shape_[0], shape_[2], shape_[3], shape_[1]}).permute({0, 3, 1, 2});
}

// Memory only grows: a smaller minibatch uses the beginning of a larger one's memory. When memory
// grows, it is no longer shared with other blobs; Split and similar layers share it again in each
// Reshape.
SyncedArray& Blob::Values::Memory(const Blob& blob) {
  if (!memory || memory->count() < blob.count_) {
    memory = std::make_shared<SyncedArray>(blob.count_, blob.device_);
  }
  return *memory;
}

// Requests the memory even if `host` already exists, because the request copies new values from the
// device.
Tensor& Blob::Values::Host(const Blob& blob) {
  const Tensor& flat = TakeMemory(blob, [&]() -> const Tensor& { return Memory(blob).host(); });
  if (!host.defined()) host = blob.View(flat);
  return host;
}

Tensor& Blob::Values::Device(const Blob& blob) {
  if (!blob.device_.separate) return Host(blob);
  const Tensor& flat = TakeMemory(blob, [&]() -> const Tensor& { return Memory(blob).device(); });
  return DeviceView(blob, flat);
}

// Replaces a view of old memory: SetOnDevice() may have replaced the device's memory, possibly
// through another blob that shares it. The host's memory is never replaced.
Tensor& Blob::Values::DeviceView(const Blob& blob, const Tensor& flat) {
  if (!device.defined() || !device.is_alias_of(flat)) device = blob.View(flat);
  return device;
}

const Tensor& Blob::Values::ReadOnDevice(const Blob& blob) {
  if (!blob.device_.separate) return Host(blob);
  const Tensor& flat =
      TakeMemory(blob, [&]() -> const Tensor& { return Memory(blob).device_to_read(); });
  return DeviceView(blob, flat);
}

void Blob::Values::SetOnDevice(const Blob& blob, const Tensor& values) {
  SyncedArray& array = Memory(blob);
  const bool fits = array.count() == values.numel();
  // Adopts the memory of `values` if possible. If the array is larger or the values are in another
  // order, the array keeps its memory and the values are copied.
  if (blob.device_.separate && fits && values.is_contiguous()) {
    array.Adopt(values.view({-1}));
  } else {
    Device(blob).copy_(values.reshape(blob.shape_));
  }
}

const float* Blob::Values::Read(const Blob& blob) {
  return TakeMemory(blob, [&] { return Memory(blob).host_to_read().data_ptr(); });
}

void Blob::Values::Share(const Values& other) {
  // A net calls this in every reshape, almost always with memory that is already shared.
  if (memory && memory == other.memory) return;
  memory = other.memory;
  DropViews();
}

void Blob::Values::Bind(const Blob& blob, Tensor flat, Tensor on_device) {
  RequireRoom(flat, blob.count_);
  memory = std::make_shared<SyncedArray>(std::move(flat), std::move(on_device));
  DropViews();
}

void Blob::Values::DropViews() {
  host.reset();
  device.reset();
}

Tensor& Blob::data() { return data_.Host(*this); }

Tensor& Blob::diff() { return diff_.Host(*this); }

Tensor& Blob::device_data() { return data_.Device(*this); }

Tensor& Blob::device_diff() { return diff_.Device(*this); }

void Blob::ClearDiff() { diff_.Memory(*this).SetZero(); }

void Blob::AddToDeviceDiff(const Tensor& values) {
  const auto [sum, beta] = diff_to_add_to();
  const Tensor shaped = values.reshape(sum.sizes());
  beta == 0 ? sum.copy_(shaped) : sum.add_(shaped);
}

Blob::Sum Blob::diff_to_add_to() {
  SyncedArray& memory = diff_.Memory(*this);
  // Queried first, because device_to_overwrite() resets it.
  const float beta = memory.is_zero() ? 0.f : 1.f;
  TakeMemory(*this, [&] { memory.device_to_overwrite(); });
  return {device_diff(), beta};
}

void Blob::set_device(const ComputeDevice& device) {
  if (device == device_) return;
  device_ = device;
  for (Values* values : {&data_, &diff_}) {
    if (!values->memory) continue;
    // Copies the values through the host, because it can exchange data with both devices. Blobs
    // that shared the old memory keep using the old memory.
    const Tensor before = values->memory->host();
    values->memory = std::make_shared<SyncedArray>(before.numel(), device);
    values->memory->host().copy_(before);
    values->DropViews();
  }
}

void Blob::ShareData(Blob& other) {
  Require(count_ == other.count_, ErrorCode::kInternal,
          "blobs of shapes {} and {} cannot share data", ShapeString(), other.ShapeString());
  // Allocates the memory if necessary. Otherwise, memory that one of the two blobs allocates later
  // would not be shared.
  other.data_.Memory(other);
  data_.Share(other.data_);
}

void Blob::ShareDiff(Blob& other) {
  Require(count_ == other.count_, ErrorCode::kInternal,
          "blobs of shapes {} and {} cannot share diffs", ShapeString(), other.ShapeString());
  other.diff_.Memory(other);
  diff_.Share(other.diff_);
}

void Blob::BindData(Tensor flat, Tensor device) {
  data_.Bind(*this, std::move(flat), std::move(device));
}

void Blob::BindDiff(Tensor flat, Tensor device) {
  diff_.Bind(*this, std::move(flat), std::move(device));
}

void Blob::BindDiff(SyncedArray::Take take) {
  // A diff that is never requested uses no memory.
  diff_.memory = std::make_shared<SyncedArray>(count_, device_, std::move(take));
  diff_.DropViews();
}

}  // namespace hearth::caffe
