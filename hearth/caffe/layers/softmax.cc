// Softmax along one axis.
#include <ATen/ATen.h>

#include "hearth/caffe/layers/all_layers.h"

namespace hearth::caffe {
namespace {

class SoftmaxLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.allows_in_place = true}; }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    axis_ = bottom[0]->CanonicalAxis(param_.softmax_param().axis());
    if (top[0] != bottom[0]) {
      top[0]->ReshapeLike(*bottom[0]);
    } else {
      input_.ReshapeLike(*bottom[0]);
    }
    if (top_overwritten()) output_.ReshapeLike(*bottom[0]);
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    at::Tensor x = bottom[0]->device_data();
    if (top[0] == bottom[0]) x = input_.device_data().copy_(x);
    at::_softmax_out(top[0]->device_data(), x, axis_, /*half_to_float=*/false);
    if (top_overwritten()) output_.device_data().copy_(top[0]->device_data());
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    if (!propagate_down[0]) return;
    at::Tensor dy = top[0]->device_diff();
    if (top[0] == bottom[0]) dy = input_.device_data().copy_(dy);
    const at::Tensor& y = (top_overwritten() ? output_ : *top[0]).device_data();
    at::_softmax_backward_data_out(bottom[0]->device_diff(), dy, y, axis_, at::kFloat);
  }

 private:
  int64_t axis_ = 1;
  Blob input_;   // in place only: ATen must not read what it overwrites
  Blob output_;  // a copy, where a later layer overwrites the top
};

}  // namespace

void RegisterSoftmax(LayerRegistry& registry) { registry.Add<SoftmaxLayer>("Softmax"); }

}  // namespace hearth::caffe
