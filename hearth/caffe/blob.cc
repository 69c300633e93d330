#include "hearth/caffe/blob.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "hearth/base/error.h"

namespace hearth::caffe {
namespace {

int64_t CheckedCount(const Shape& shape) {
  int64_t count = 1;
  for (int64_t dim : shape) {
    Require(dim >= 0, ErrorCode::kInvalidArgument, "a blob cannot have the shape [{}]",
            fmt::join(shape, ", "));
    Require(!__builtin_mul_overflow(count, dim, &count), ErrorCode::kInvalidArgument,
            "a blob of shape [{}] has too many elements", fmt::join(shape, ", "));
  }
  return count;
}

void RequireRoom(const at::Tensor& flat, int64_t count) {
  Require(flat.dim() == 1 && flat.scalar_type() == at::kFloat && flat.is_contiguous() &&
              flat.numel() >= count,
          ErrorCode::kInternal,
          "a blob of {} floats cannot live in a tensor of {} elements of type {}", count,
          flat.numel(), at::toString(flat.scalar_type()));
}

}  // namespace

void Blob::Reshape(Shape shape) {
  if (shape == shape_ && (count_ > 0 || !shape.empty())) return;
  const int64_t count = CheckedCount(shape);
  shape_ = std::move(shape);
  count_ = count;
  data_.reset();
  diff_.reset();
}

void Blob::set_layout(Layout layout) {
  layout_ = layout;
  data_.reset();
  diff_.reset();
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

at::Tensor Blob::View(at::Tensor& storage) {
  if (!storage.defined() || storage.numel() < count_) storage = at::zeros({count_}, at::kFloat);
  at::Tensor flat = storage.narrow(0, 0, count_);
  if (layout() == Layout::kContiguous) return flat.view(shape_);
  return flat.view({shape_[0], shape_[2], shape_[3], shape_[1]}).permute({0, 3, 1, 2});
}

at::Tensor& Blob::data() {
  if (!data_.defined()) data_ = View(data_storage_);
  return data_;
}

at::Tensor& Blob::diff() {
  if (!diff_.defined()) diff_ = View(diff_storage_);
  return diff_;
}

void Blob::ShareData(Blob& other) {
  Require(count_ == other.count_, ErrorCode::kInternal,
          "blobs of shapes {} and {} cannot share data", ShapeString(), other.ShapeString());
  other.data();
  // A net shares again at every reshape; nearly always nothing has changed.
  if (data_storage_.defined() && data_storage_.is_same(other.data_storage_)) return;
  data_storage_ = other.data_storage_;
  data_.reset();
}

void Blob::ShareDiff(Blob& other) {
  Require(count_ == other.count_, ErrorCode::kInternal,
          "blobs of shapes {} and {} cannot share diffs", ShapeString(), other.ShapeString());
  other.diff();
  if (diff_storage_.defined() && diff_storage_.is_same(other.diff_storage_)) return;
  diff_storage_ = other.diff_storage_;
  diff_.reset();
}

void Blob::BindData(at::Tensor flat) {
  RequireRoom(flat, count_);
  data_storage_ = std::move(flat);
  data_.reset();
}

void Blob::BindDiff(at::Tensor flat) {
  RequireRoom(flat, count_);
  diff_storage_ = std::move(flat);
  diff_.reset();
}

}  // namespace hearth::caffe
