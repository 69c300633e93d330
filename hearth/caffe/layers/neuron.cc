#include "hearth/caffe/layers/neuron.h"

namespace hearth::caffe {

// The saved copies get the bottom's layout: the loops iterate over memory, so all arrays need the
// same order.
void NeuronLayer::Reshape(const Blobs& bottom, const Blobs& top) {
  if (top[0] != bottom[0]) top[0]->ReshapeLike(*bottom[0]);
  for (Blob* kept : {&input_, &output_}) {
    if (kept == &input_ ? !keeps_input(bottom, top) : !keeps_output()) continue;
    kept->ReshapeLike(*bottom[0]);
    if (kept->layout() != bottom[0]->layout()) kept->set_layout(bottom[0]->layout());
  }
}

void NeuronLayer::Forward(const Blobs& bottom, const Blobs& top) {
  const Tensor& x = bottom[0]->device_data();
  Tensor& y = top[0]->device_data();
  // The input is saved before Apply() overwrites it.
  if (keeps_input(bottom, top)) input_.device_data().copy_(x);
  on_device() ? ApplyOnDevice(x, y) : Apply(x, y);
  if (keeps_output()) output_.device_data().copy_(y);
}

void NeuronLayer::Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                           const Blobs& bottom) {
  if (!propagate_down[0] && blobs_.empty()) return;
  // One loop computes the gradients of the bottom and of the parameters. If the bottom's gradient
  // is not requested, it is written to input_ and discarded.
  if (!propagate_down[0]) input_.ReshapeLike(*bottom[0]);
  Blob& target = propagate_down[0] ? *bottom[0] : input_;
  Blob& input = keeps_input(bottom, top) ? input_ : *bottom[0];
  Blob& output = keeps_output() ? output_ : *top[0];
  const Tensor &dy = top[0]->device_diff(), &x = input.device_data();
  const Tensor& y = output.device_data();
  Tensor& dx = target.device_diff();
  on_device() ? GradientOnDevice(dy, x, y, dx) : Gradient(dy, x, y, dx);
}

}  // namespace hearth::caffe
