#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hearth/caffe/tensor/synced_array.h"

namespace hearth::caffe {

// The memory layout of a blob with four axes. Convolution kernels are fastest with kChannelsLast
// (NHWC). Blobs with another number of axes are always row-major.
enum class Layout { kContiguous, kChannelsLast };

// The data that layers exchange: a float32 array and, for training, its gradient. In a net that
// computes on a device, the host and the device each have a copy. A request updates the requested
// copy; if it allows writing, the other copy becomes stale. Not thread-safe: a blob belongs to one
// net, and a net to one thread.
class Blob {
 public:
  Blob() = default;
  explicit Blob(Shape shape) { Reshape(std::move(shape)); }

  // Changes the shape. Memory that is large enough is kept, so a smaller last minibatch does not
  // allocate.
  void Reshape(Shape shape);
  // Sets the shape and the device of `other`.
  void ReshapeLike(const Blob& other) {
    set_device(other.device_);
    Reshape(other.shape());
  }

  const Shape& shape() const { return shape_; }
  int64_t num_axes() const { return static_cast<int64_t>(shape_.size()); }
  int64_t count() const { return count_; }
  // Product of the dimensions [start, end). An `end` of -1 stands for the number of axes.
  int64_t count(int64_t start, int64_t end = -1) const;
  // One dimension; negative axes count from the end. Throws kInvalidArgument if out of range.
  int64_t shape(int64_t axis) const { return shape_[CanonicalAxis(axis)]; }
  int64_t CanonicalAxis(int64_t axis) const;
  // "2 3 4 5 (120)", as Caffe prints it.
  std::string ShapeString() const;

  // Sets the device of device_data(). Values are kept.
  void set_device(const ComputeDevice& device);

  // Sets the layout of data and diff. Their values are lost, not permuted.
  void set_layout(Layout layout);
  // kContiguous unless the blob has four axes.
  Layout layout() const { return num_axes() == 4 ? layout_ : Layout::kContiguous; }

  // Dense tensors of exactly shape(), in the blob's layout. They are allocated and zeroed on first
  // use. After the device's copies were used, the tensors must be requested again.
  Tensor& data();
  Tensor& diff();
  // The copies of data() and diff() in the device's memory; data() and diff() themselves if the
  // device has no separate memory.
  Tensor& device_data();
  Tensor& device_diff();
  // Sets the device's copy to `values`, which must be count() values. Adopts their memory without
  // copying if they are contiguous and the blob's memory has exactly that size. Not for parameters,
  // which are all in one array.
  void SetDeviceData(const Tensor& values) { data_.SetOnDevice(*this, values); }
  void SetDeviceDiff(const Tensor& values) { diff_.SetOnDevice(*this, values); }
  // Sets the gradient to zero. Its memory is written only when the gradient is requested.
  void ClearDiff();
  // A gradient and a factor `beta`, for ATen's functions that compute beta * gradient + addend.
  // `beta` is 0 if the gradient was cleared, since its memory may then be uninitialized; otherwise
  // it is 1.
  struct Sum {
    Tensor& device_diff;
    float beta;
  };
  Sum diff_to_add_to();
  // Adds `values`, which must have count() elements, to the device's copy of the gradient.
  void AddToDeviceDiff(const Tensor& values);
  // Pointers to the count() floats of data() and diff(), in the order of the layout.
  float* data_ptr() { return data().data_ptr(); }
  float* diff_ptr() { return diff().data_ptr(); }
  // These are for reading only, so the other copy stays valid.
  const Tensor& device_data_to_read() { return data_.ReadOnDevice(*this); }
  const float* read_data() { return data_.Read(*this); }
  const float* read_diff() { return diff_.Read(*this); }
  bool has_diff() const { return diff_.has_view(); }

  // Makes this blob use the memory of `other`, which must have the same count. Used by Split,
  // Reshape and Flatten, and to share parameters.
  void ShareData(Blob& other);
  void ShareDiff(Blob& other);
  // Moves the values into `flat` (float32, at least count() elements). Parameters are in one array,
  // so their gradients can be reduced across ranks without a copy. `device` is the corresponding
  // memory of the device if the device has separate memory.
  void BindData(Tensor flat, Tensor device = {});
  void BindDiff(Tensor flat, Tensor device = {});
  // Like BindDiff(flat), but when the diff is first requested, `take` allocates zeroed memory.
  void BindDiff(SyncedArray::Take take);
  // Equal for blobs that share memory through ShareData or ShareDiff. Null before memory is
  // allocated.
  const void* data_identity() const { return data_.memory.get(); }
  const void* diff_identity() const { return diff_.memory.get(); }

 private:
  // Data or diff: flat memory of at least count_ elements, and views of it with the blob's shape.
  struct Values {
    std::shared_ptr<SyncedArray> memory;
    Tensor host, device;

    SyncedArray& Memory(const Blob& blob);
    Tensor& Host(const Blob& blob);
    Tensor& Device(const Blob& blob);
    const Tensor& ReadOnDevice(const Blob& blob);
    void SetOnDevice(const Blob& blob, const Tensor& values);
    Tensor& DeviceView(const Blob& blob, const Tensor& flat);
    const float* Read(const Blob& blob);
    void Share(const Values& other);
    void Bind(const Blob& blob, Tensor flat, Tensor device);
    bool has_view() const { return host.defined() || device.defined(); }
    void DropViews();
  };
  Tensor View(const Tensor& flat) const;

  Shape shape_;
  int64_t count_ = 0;
  Layout layout_ = Layout::kContiguous;
  ComputeDevice device_;
  Values data_, diff_;
};

}  // namespace hearth::caffe
