// The unit of data between layers: a float32 array and, for training, its gradient.
// Not thread-safe: a blob belongs to one net, and a net to one thread.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hearth::caffe {

using Shape = std::vector<int64_t>;

// The order of a blob of four axes in memory. Convolution kernels are fastest where the channels of
// one place lie side by side; all other shapes are row-major.
enum class Layout { kContiguous, kChannelsLast };

class Blob {
 public:
  Blob() = default;
  explicit Blob(Shape shape) { Reshape(std::move(shape)); }

  // Gives the blob a new shape. Storage is kept while it is large enough, so that a smaller last
  // minibatch allocates nothing.
  void Reshape(Shape shape);
  void ReshapeLike(const Blob& other) { Reshape(other.shape()); }

  const Shape& shape() const { return shape_; }
  int64_t num_axes() const { return static_cast<int64_t>(shape_.size()); }
  int64_t count() const { return count_; }
  // Product of the dimensions [start, end); `end` of -1 means all that follow.
  int64_t count(int64_t start, int64_t end = -1) const;
  // One dimension; negative axes count from the end. Throws kInvalidArgument when out of range.
  int64_t shape(int64_t axis) const { return shape_[CanonicalAxis(axis)]; }
  int64_t CanonicalAxis(int64_t axis) const;
  // "2 3 4 5 (120)", as Caffe prints it.
  std::string ShapeString() const;

  // Of data and diff. What they hold is lost, not permuted.
  void set_layout(Layout layout);
  // kContiguous unless the blob has four axes.
  Layout layout() const { return num_axes() == 4 ? layout_ : Layout::kContiguous; }

  // Dense tensors of exactly shape(), in the blob's layout, allocated (zeroed) on first use.
  at::Tensor& data();
  at::Tensor& diff();
  // The same memory as a plain array of count() floats, in the order of the layout.
  float* data_ptr() { return data().data_ptr<float>(); }
  float* diff_ptr() { return diff().data_ptr<float>(); }
  bool has_diff() const { return diff_.defined(); }

  // Makes this blob use `other`'s memory (same count). Used by Split, Reshape, Flatten, sharing.
  void ShareData(Blob& other);
  void ShareDiff(Blob& other);
  // Places the memory in `flat` (float32, at least count() elements): parameters live in one
  // arena so that their gradients can be reduced across ranks without a copy.
  void BindData(at::Tensor flat);
  void BindDiff(at::Tensor flat);
  // Equal for blobs that share memory; null before there is any.
  const void* data_identity() const { return Identity(data_storage_); }
  const void* diff_identity() const { return Identity(diff_storage_); }

 private:
  at::Tensor View(at::Tensor& storage);
  static const void* Identity(const at::Tensor& storage) {
    return storage.defined() ? storage.unsafeGetTensorImpl() : nullptr;
  }

  Shape shape_;
  int64_t count_ = 0;
  Layout layout_ = Layout::kContiguous;
  at::Tensor data_storage_, diff_storage_;  // flat, capacity >= count_
  at::Tensor data_, diff_;                  // views of shape_
};

}  // namespace hearth::caffe
