// What element-wise layers with one bottom and one top share.
#pragma once

#include <ATen/Parallel.h>

#include "hearth/caffe/layer.h"

namespace hearth::caffe {

// Elements that one thread should get at least, for loops with a few operations per element.
inline constexpr int64_t kElementGrain = 16384;

// out[i] = f(inputs[i]...). `out` may be one of the inputs.
template <typename Function, typename... Inputs>
void Map(const at::Tensor& out, Function f, const Inputs&... inputs) {
  float* to = out.data_ptr<float>();
  const auto loop = [&](const auto*... from) {
    at::parallel_for(0, out.numel(), kElementGrain, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) to[i] = f(from[i]...);
    });
  };
  loop(inputs.template const_data_ptr<float>()...);
}

// Works in place: a layer whose gradient needs its input then keeps a copy of it.
class NeuronLayer : public Layer {
 public:
  using Layer::Layer;

  bool AllowsInPlace() const override { return true; }
  void Reshape(const Blobs& bottom, const Blobs& top) override;
  void Forward(const Blobs& bottom, const Blobs& top) override;
  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override;

 protected:
  // y = f(x); y may be x.
  virtual void Apply(const at::Tensor& x, at::Tensor& y) = 0;
  // dx = dy * f'(x), where y = f(x); dx may be dy. x is y unless GradientNeedsInput().
  virtual void Gradient(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& y,
                        at::Tensor& dx) = 0;
  virtual bool GradientNeedsInput() const { return true; }

 private:
  Blob input_;  // in-place layers only
};

}  // namespace hearth::caffe
