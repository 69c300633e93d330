// Softmax along one axis.
#include "hearth/caffe/kernels/vector_math.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"

namespace hearth::caffe {
namespace {

// y_c = e^(x_c - max) / sum of e^(x_k - max); dx_c = y_c * (dy_c - sum of y_k * dy_k).
class SoftmaxLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.allows_in_place = true}; }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    axis_ = bottom[0]->CanonicalAxis(param_.softmax_param().axis());
    if (top[0] != bottom[0]) top[0]->ReshapeLike(*bottom[0]);
    if (top[0] == bottom[0] && on_device()) input_.ReshapeLike(*bottom[0]);
    if (top_overwritten()) output_.ReshapeLike(*bottom[0]);
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    if (on_device()) {
      Tensor x = bottom[0]->device_data();
      if (top[0] == bottom[0]) x = input_.device_data().copy_(x);
      device::softmax_out(top[0]->device_data(), x, axis_);
    } else {
      Softmax(ShapeOf(*bottom[0]), bottom[0]->data_ptr(), top[0]->data_ptr());
    }
    if (top_overwritten()) output_.device_data().copy_(top[0]->device_data());
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    if (!propagate_down[0]) return;
    Blob& output = top_overwritten() ? output_ : *top[0];
    if (!on_device()) {
      SoftmaxGradient(ShapeOf(*bottom[0]), output.data_ptr(), top[0]->diff_ptr(),
                      bottom[0]->diff_ptr());
      return;
    }
    Tensor dy = top[0]->device_diff();
    if (top[0] == bottom[0]) dy = input_.device_data().copy_(dy);
    device::softmax_backward_out(bottom[0]->device_diff(), dy, output.device_data(), axis_);
  }

 private:
  SoftmaxShape ShapeOf(const Blob& blob) const {
    return {blob.count(0, axis_), blob.shape(axis_), blob.count(axis_ + 1)};
  }

  int64_t axis_ = 1;
  // A copy for in-place use on a device, where ATen must not read the memory that it overwrites.
  Blob input_;
  Blob output_;  // a copy, if a later layer overwrites the top
};

}  // namespace

void RegisterSoftmax(LayerRegistry& registry) { registry.Add<SoftmaxLayer>("Softmax"); }

}  // namespace hearth::caffe
