// Im2col: one column per position of a convolution's window, with the values in the window.
#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/caffe/kernels/window.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"

namespace hearth::caffe {
namespace {

// y[n, (c, tap), p] = x[n, c, p * stride - pad + tap * dilation], 0 in the padding. Caffe computes
// a convolution as a product with this matrix. dx is the sum of dy over the windows that share a
// value.
class Im2colLayer : public Layer {
 public:
  using Layer::Layer;

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    const ConvolutionParameter& param = param_.convolution_param();
    const Blob& x = *bottom[0];
    axis_ = x.CanonicalAxis(param.axis());
    const int64_t spatial_axes = x.num_axes() - axis_ - 1;
    Require(spatial_axes > 0, ErrorCode::kInvalidArgument,
            "a bottom of shape {} has no spatial axes after axis {}", x.ShapeString(), axis_);
    window_ = ReadWindow(param, spatial_axes);
    taps_ = 1;
    Shape sizes;
    for (int64_t i = 0; i < spatial_axes; ++i) {
      const int64_t input = x.shape(axis_ + 1 + i);
      sizes.push_back(window_.OutputSize(input, i));
      taps_ *= window_.kernel[i];
      Require(sizes.back() > 0, ErrorCode::kInvalidArgument,
              "kernel {} with pad {} does not fit into axis {} of shape {}", window_.kernel[i],
              window_.pad[i], axis_ + 1 + i, x.ShapeString());
    }
    image_shape_ = {x.count(0, axis_), x.shape(axis_)};
    column_shape_ = {x.count(0, axis_), x.shape(axis_), taps_};
    image_shape_.insert(image_shape_.end(), x.shape().begin() + axis_ + 1, x.shape().end());
    column_shape_.insert(column_shape_.end(), sizes.begin(), sizes.end());
    Shape shape(x.shape().begin(), x.shape().begin() + axis_);
    shape.push_back(x.shape(axis_) * taps_);
    shape.insert(shape.end(), sizes.begin(), sizes.end());
    top[0]->Reshape(shape);
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    top[0]->device_data().zero_();  // the values in the padding
    ForEachTap(bottom[0]->device_data(), top[0]->device_data(),
               [](const Tensor& values, const Tensor& column) { column.copy_(values); });
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    if (!propagate_down[0]) return;
    bottom[0]->device_diff().zero_();
    ForEachTap(bottom[0]->device_diff(), top[0]->device_diff(),
               [](const Tensor& values, const Tensor& column) { values.add_(column); });
  }

 private:
  // Calls f(values, column) for each tap (a position in the kernel): the values at the tap in all
  // images, and the part of the columns that contains them.
  template <typename Function>
  void ForEachTap(const Tensor& images, const Tensor& columns, Function f) const {
    for (int64_t tap = 0; tap < taps_; ++tap) {
      Tensor values = images.view(image_shape_);
      Tensor column = columns.view(column_shape_).select(2, tap);
      // Narrows both views along each spatial axis, the last one first, to the windows in which the
      // tap is inside the image.
      int64_t rest = tap;
      for (int64_t i = static_cast<int64_t>(window_.kernel.size()); i-- > 0;) {
        // The tap's coordinate along the axis in window 0; in window p it is first + p * stride.
        const int64_t first = rest % window_.kernel[i] * window_.dilation[i] - window_.pad[i];
        rest /= window_.kernel[i];
        const int64_t input = image_shape_[2 + i], stride = window_.stride[i];
        // The tap is inside the image in windows [begin, end). `begin` is rounded up, and the last
        // window is rounded down.
        const int64_t begin = first >= 0 ? 0 : (stride - 1 - first) / stride;
        const int64_t end = first >= input
                                ? begin
                                : std::min(column_shape_[3 + i], (input - 1 - first) / stride + 1);
        const int64_t count = std::max<int64_t>(0, end - begin);
        column = column.narrow(2 + i, count > 0 ? begin : 0, count);
        values = count > 0 ? values.slice(2 + i, first + begin * stride,
                                          first + (end - 1) * stride + 1, stride)
                           : values.narrow(2 + i, 0, 0);
      }
      f(values, column);
    }
  }

  Window window_;
  int64_t axis_ = 1, taps_ = 1;
  Shape image_shape_;   // images, channels, spatial axes
  Shape column_shape_;  // images, channels, taps, positions of the window
};

}  // namespace

void RegisterIm2col(LayerRegistry& registry) { registry.Add<Im2colLayer>("Im2col"); }

}  // namespace hearth::caffe
