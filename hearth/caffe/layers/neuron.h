// Base of elementwise layers with one bottom and one top.
#pragma once

#include "hearth/caffe/net/layer.h"
#include "hearth/caffe/tensor/parallel.h"

namespace hearth::caffe {

// Minimum number of elements per thread, for loops with a few operations per element.
inline constexpr int64_t kElementGrain = 16384;

// out[i] = f(inputs[i]...). `out` may be one of the inputs.
template <typename Function, typename... Inputs>
void Map(const Tensor& out, Function f, const Inputs&... inputs) {
  float* to = out.data_ptr();
  const auto loop = [&](const auto*... from) {
    ParallelFor(0, out.numel(), kElementGrain, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) to[i] = f(from[i]...);
    });
  };
  loop(inputs.template data_ptr()...);
}

// Base of elementwise layers, which can run in place. Values that the gradient needs are copied
// before they are overwritten: the input if this layer runs in place, the output if a later layer
// does.
class NeuronLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    return {.allows_in_place = true, .channels_last = ChannelsLast::kSame};
  }
  void Reshape(const Blobs& bottom, const Blobs& top) override;
  void Forward(const Blobs& bottom, const Blobs& top) override;
  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override;

 protected:
  // y = f(x); y may be x.
  virtual void Apply(const Tensor& x, Tensor& y) = 0;
  // dx = dy * f'(x), where y = f(x); dx may be dy. x and y are valid only if GradientNeedsInput()
  // and GradientNeedsOutput(), respectively, return true.
  virtual void Gradient(const Tensor& dy, const Tensor& x, const Tensor& y, Tensor& dx) = 0;
  // Like Apply() and Gradient(), but with ATen's kernels, for tensors on any device.
  virtual void ApplyOnDevice(const Tensor& x, Tensor& y) = 0;
  virtual void GradientOnDevice(const Tensor& dy, const Tensor& x, const Tensor& y, Tensor& dx) = 0;
  virtual bool GradientNeedsInput() const { return true; }
  virtual bool GradientNeedsOutput() const { return !GradientNeedsInput(); }

 private:
  bool keeps_input(const Blobs& bottom, const Blobs& top) const {
    return top[0] == bottom[0] && GradientNeedsInput();
  }
  bool keeps_output() const { return top_overwritten() && GradientNeedsOutput(); }

  Blob input_, output_;  // copies of bottom and top, if they are needed
};

}  // namespace hearth::caffe
