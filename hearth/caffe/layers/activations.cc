// Activation functions without learned parameters. (ReLU is in relu.cc.)
#include <cmath>

#include "hearth/base/error.h"
#include "hearth/caffe/kernels/vector_math.h"
#include "hearth/caffe/layers/neuron.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"

namespace hearth::caffe {
namespace {

// For very negative x, e^-x overflows to infinity, so the result is 0, which is correct.
float Sigmoid(float x) { return 1.f / (1.f + std::exp(-x)); }

// y = 1 / (1 + e^-x), dx = dy * y * (1 - y). dx is computed from y, so the layer need not save its
// input when it runs in place.
class SigmoidLayer : public NeuronLayer {
 public:
  using NeuronLayer::NeuronLayer;

 protected:
  void Apply(const Tensor& x, Tensor& y) override {
    SigmoidOf(x.data_ptr(), y.data_ptr(), x.numel());
  }
  void Gradient(const Tensor& dy, const Tensor&, const Tensor& y, Tensor& dx) override {
    Map(
        dx, [](float g, float s) { return g * s * (1 - s); }, dy, y);
  }
  void ApplyOnDevice(const Tensor& x, Tensor& y) override { device::sigmoid_out(y, x); }
  void GradientOnDevice(const Tensor& dy, const Tensor& x, const Tensor& y, Tensor& dx) override {
    device::sigmoid_backward_out(dx, dy, y);
  }
  bool GradientNeedsInput() const override { return false; }
};

// y = tanh x, dx = dy * (1 - y^2).
class TanHLayer : public NeuronLayer {
 public:
  using NeuronLayer::NeuronLayer;

 protected:
  void Apply(const Tensor& x, Tensor& y) override { TanhOf(x.data_ptr(), y.data_ptr(), x.numel()); }
  void Gradient(const Tensor& dy, const Tensor&, const Tensor& y, Tensor& dx) override {
    Map(
        dx, [](float g, float t) { return g * (1 - t * t); }, dy, y);
  }
  void ApplyOnDevice(const Tensor& x, Tensor& y) override { device::tanh_out(y, x); }
  void GradientOnDevice(const Tensor& dy, const Tensor& x, const Tensor& y, Tensor& dx) override {
    device::tanh_backward_out(dx, dy, y);
  }
  bool GradientNeedsInput() const override { return false; }
};

// y = |x|, dx = dy * sign(x), where sign(0) = 0 as in Caffe.
class AbsValLayer : public NeuronLayer {
 public:
  using NeuronLayer::NeuronLayer;

 protected:
  void Apply(const Tensor& x, Tensor& y) override {
    Map(
        y, [](float v) { return std::fabs(v); }, x);
  }
  void Gradient(const Tensor& dy, const Tensor& x, const Tensor&, Tensor& dx) override {
    Map(
        dx, [](float g, float v) { return v > 0   ? g
                                          : v < 0 ? -g
                                                  : 0; }, dy, x);
  }
  void ApplyOnDevice(const Tensor& x, Tensor& y) override { device::abs_out(y, x); }
  void GradientOnDevice(const Tensor& dy, const Tensor& x, const Tensor& y, Tensor& dx) override {
    device::mul_out(dx, dy, x.sign());
  }
};

// y = x above zero, alpha * (e^x - 1) below (Clevert et al. 2016); expm1 keeps its precision near
// zero. dx = dy above zero, dy * alpha * e^x below.
class EluLayer : public NeuronLayer {
 public:
  EluLayer(const LayerParameter& param, const NetContext& context)
      : NeuronLayer(param, context), alpha_(param.elu_param().alpha()) {}

 protected:
  void Apply(const Tensor& x, Tensor& y) override {
    Map(
        y, [a = alpha_](float v) { return v > 0 ? v : a * std::expm1(v); }, x);
  }
  void Gradient(const Tensor& dy, const Tensor& x, const Tensor&, Tensor& dx) override {
    Map(
        dx, [a = alpha_](float g, float v) { return v > 0 ? g : g * a * std::exp(v); }, dy, x);
  }
  void ApplyOnDevice(const Tensor& x, Tensor& y) override { device::elu_out(y, x, alpha_); }
  void GradientOnDevice(const Tensor& dy, const Tensor& x, const Tensor& y, Tensor& dx) override {
    device::mul_out(dx, dy, device::where(x > 0, 1, alpha_ * x.exp()));
  }

 private:
  const float alpha_;
};

// y = log(1 + e^x), computed as max(x, 0) + log(1 + e^-|x|), which does not overflow for large x.
// dx = dy * sigmoid(x).
class BnllLayer : public NeuronLayer {
 public:
  using NeuronLayer::NeuronLayer;

 protected:
  void Apply(const Tensor& x, Tensor& y) override {
    Map(
        y, [](float v) { return std::max(v, 0.f) + std::log1p(std::exp(-std::fabs(v))); }, x);
  }
  void Gradient(const Tensor& dy, const Tensor& x, const Tensor&, Tensor& dx) override {
    Map(
        dx, [](float g, float v) { return g * Sigmoid(v); }, dy, x);
  }
  void ApplyOnDevice(const Tensor& x, Tensor& y) override {
    device::add_out(y, x.clamp_min(0), (-x.abs()).exp_().log1p_());
  }
  void GradientOnDevice(const Tensor& dy, const Tensor& x, const Tensor& y, Tensor& dx) override {
    device::mul_out(dx, dy, x.sigmoid());
  }
};

// y = x * s, where s = sigmoid(beta * x); dx = dy * (s + beta * x * s * (1 - s)).
class SwishLayer : public NeuronLayer {
 public:
  SwishLayer(const LayerParameter& param, const NetContext& context)
      : NeuronLayer(param, context), beta_(param.swish_param().beta()) {}

 protected:
  void Apply(const Tensor& x, Tensor& y) override {
    Map(
        y, [b = beta_](float v) { return v * Sigmoid(b * v); }, x);
  }
  void Gradient(const Tensor& dy, const Tensor& x, const Tensor&, Tensor& dx) override {
    const auto slope = [b = beta_](float g, float v) {
      const float s = Sigmoid(b * v);
      return g * s * (1 + b * v * (1 - s));
    };
    Map(dx, slope, dy, x);
  }
  void ApplyOnDevice(const Tensor& x, Tensor& y) override {
    device::mul_out(y, x, (beta_ * x).sigmoid_());
  }
  void GradientOnDevice(const Tensor& dy, const Tensor& x, const Tensor& y, Tensor& dx) override {
    const Tensor s = (beta_ * x).sigmoid_();
    device::mul_out(dx, dy, s * (1 + beta_ * x * (1 - s)));
  }

 private:
  const float beta_;
};

// y = x limited to [min, max]. As in Caffe, the gradient is also passed where x equals min or max.
class ClipLayer : public NeuronLayer {
 public:
  ClipLayer(const LayerParameter& param, const NetContext& context)
      : NeuronLayer(param, context),
        min_(param.clip_param().min()),
        max_(param.clip_param().max()) {}

 protected:
  void Apply(const Tensor& x, Tensor& y) override {
    Map(
        y, [lo = min_, hi = max_](float v) { return std::max(lo, std::min(v, hi)); }, x);
  }
  void Gradient(const Tensor& dy, const Tensor& x, const Tensor&, Tensor& dx) override {
    const auto gate = [lo = min_, hi = max_](float g, float v) {
      return v >= lo && v <= hi ? g : 0;
    };
    Map(dx, gate, dy, x);
  }
  void ApplyOnDevice(const Tensor& x, Tensor& y) override { device::clamp_out(y, x, min_, max_); }
  void GradientOnDevice(const Tensor& dy, const Tensor& x, const Tensor& y, Tensor& dx) override {
    device::mul_out(dx, dy, device::logical_and(x >= min_, x <= max_));
  }

 private:
  const float min_, max_;
};

// y = 1 above the threshold, else 0. The layer has no gradient: force_backward skips the bottom,
// whereas Caffe aborts.
class ThresholdLayer : public NeuronLayer {
 public:
  ThresholdLayer(const LayerParameter& param, const NetContext& context)
      : NeuronLayer(param, context), threshold_(param.threshold_param().threshold()) {}

  LayerTraits traits() const override {
    LayerTraits traits = NeuronLayer::traits();
    traits.never_forced = {0};
    return traits;
  }

 protected:
  void Apply(const Tensor& x, Tensor& y) override {
    Map(
        y, [t = threshold_](float v) { return v > t ? 1.f : 0.f; }, x);
  }
  void Gradient(const Tensor&, const Tensor&, const Tensor&, Tensor&) override {
    Throw(ErrorCode::kInvalidArgument,
          "a threshold has no gradient; remove the loss after it or set propagate_down: false");
  }
  void ApplyOnDevice(const Tensor& x, Tensor& y) override { y.copy_(x > threshold_); }
  void GradientOnDevice(const Tensor& dy, const Tensor& x, const Tensor& y, Tensor& dx) override {
    Gradient(dy, x, y, dx);
  }
  bool GradientNeedsInput() const override { return false; }
  bool GradientNeedsOutput() const override { return false; }

 private:
  const float threshold_;
};

}  // namespace

void RegisterActivations(LayerRegistry& registry) {
  registry.Add<AbsValLayer>("AbsVal");
  registry.Add<BnllLayer>("BNLL");
  registry.Add<ClipLayer>("Clip");
  registry.Add<EluLayer>("ELU");
  registry.Add<SigmoidLayer>("Sigmoid");
  registry.Add<SwishLayer>("Swish");
  registry.Add<TanHLayer>("TanH");
  registry.Add<ThresholdLayer>("Threshold");
}

}  // namespace hearth::caffe
