// Power, Exp and Log: functions of shift + scale * x.
#include <cmath>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/neuron.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"

namespace hearth::caffe {
namespace {

// y = (shift + scale * x) ^ power, dx = dy * power * scale * (shift + scale * x) ^ (power - 1).
// Caffe computes dx from y / (shift + scale * x), which is NaN at 0. Powers 1 and 2 need no pow.
class PowerLayer : public NeuronLayer {
 public:
  PowerLayer(const LayerParameter& param, const NetContext& context)
      : NeuronLayer(param, context),
        power_(param.power_param().power()),
        scale_(param.power_param().scale()),
        shift_(param.power_param().shift()) {}

 protected:
  void Apply(const Tensor& x, Tensor& y) override {
    if (is_constant()) {
      y.fill_(power_ == 0 ? 1.f : std::pow(shift_, power_));
    } else if (power_ == 1) {
      Map(
          y, [a = scale_, b = shift_](float v) { return b + a * v; }, x);
    } else if (power_ == 2) {
      Map(
          y, [a = scale_, b = shift_](float v) { return (b + a * v) * (b + a * v); }, x);
    } else {
      Map(
          y, [a = scale_, b = shift_, p = power_](float v) { return std::pow(b + a * v, p); }, x);
    }
  }

  void Gradient(const Tensor& dy, const Tensor& x, const Tensor&, Tensor& dx) override {
    const float slope = power_ * scale_;
    if (is_constant()) {
      dx.zero_();
    } else if (power_ == 1) {
      Map(
          dx, [slope](float g) { return g * slope; }, dy);
    } else if (power_ == 2) {
      Map(
          dx, [slope, a = scale_, b = shift_](float g, float v) { return g * slope * (b + a * v); },
          dy, x);
    } else {
      const auto derivative = [slope, a = scale_, b = shift_, p = power_ - 1](float g, float v) {
        return g * slope * std::pow(b + a * v, p);
      };
      Map(dx, derivative, dy, x);
    }
  }
  void ApplyOnDevice(const Tensor& x, Tensor& y) override {
    if (is_constant()) {
      y.fill_(power_ == 0 ? 1.f : std::pow(shift_, power_));
    } else {
      device::pow_out(y, shift_ + scale_ * x, power_);
    }
  }
  void GradientOnDevice(const Tensor& dy, const Tensor& x, const Tensor& y, Tensor& dx) override {
    const float slope = power_ * scale_;
    if (is_constant()) {
      dx.zero_();
    } else if (power_ == 1) {
      device::mul_out(dx, dy, slope);
    } else {
      device::mul_out(dx, dy, slope * (shift_ + scale_ * x).pow(power_ - 1));
    }
  }

  bool GradientNeedsInput() const override { return !is_constant() && power_ != 1; }
  bool GradientNeedsOutput() const override { return false; }

 private:
  // Returns true if y does not depend on x. The gradient is then 0, even where the formula yields
  // NaN (0 times infinity).
  bool is_constant() const { return power_ * scale_ == 0; }

  const float power_, scale_, shift_;
};

// The natural logarithm of the base of Exp and Log. As in Caffe, a base of -1 means e.
float LogOfBase(float base, const char* layer) {
  if (base == -1) return 1;
  Require(base > 0, ErrorCode::kInvalidArgument, "{} needs a base above 0 (or -1 for e), not {}",
          layer, base);
  return std::log(base);
}

// y = base ^ (shift + scale * x) = outer * e^(inner * x), dx = dy * y * inner.
class ExpLayer : public NeuronLayer {
 public:
  ExpLayer(const LayerParameter& param, const NetContext& context) : NeuronLayer(param, context) {
    const float log_base = LogOfBase(param.exp_param().base(), "Exp");
    inner_ = log_base * param.exp_param().scale();
    // base^shift is constant, so it is computed once.
    outer_ = std::exp(log_base * param.exp_param().shift());
  }

 protected:
  void Apply(const Tensor& x, Tensor& y) override {
    Map(
        y, [a = inner_, b = outer_](float v) { return b * std::exp(a * v); }, x);
  }
  void Gradient(const Tensor& dy, const Tensor&, const Tensor& y, Tensor& dx) override {
    Map(
        dx, [a = inner_](float g, float v) { return g * v * a; }, dy, y);
  }
  void ApplyOnDevice(const Tensor& x, Tensor& y) override {
    device::mul_out(y, (inner_ * x).exp_(), outer_);
  }
  void GradientOnDevice(const Tensor& dy, const Tensor& x, const Tensor& y, Tensor& dx) override {
    device::mul_out(dx, dy, y * inner_);
  }
  bool GradientNeedsInput() const override { return false; }

 private:
  float inner_, outer_;
};

// y = log(shift + scale * x) / log(base), dx = dy * scale / log(base) / (shift + scale * x).
class LogLayer : public NeuronLayer {
 public:
  LogLayer(const LayerParameter& param, const NetContext& context)
      : NeuronLayer(param, context),
        factor_(1 / LogOfBase(param.log_param().base(), "Log")),
        scale_(param.log_param().scale()),
        shift_(param.log_param().shift()) {}

 protected:
  void Apply(const Tensor& x, Tensor& y) override {
    Map(
        y, [f = factor_, a = scale_, b = shift_](float v) { return f * std::log(b + a * v); }, x);
  }
  void Gradient(const Tensor& dy, const Tensor& x, const Tensor&, Tensor& dx) override {
    Map(
        dx,
        [f = factor_ * scale_, a = scale_, b = shift_](float g, float v) {
          return g * f / (b + a * v);
        },
        dy, x);
  }
  void ApplyOnDevice(const Tensor& x, Tensor& y) override {
    device::mul_out(y, (shift_ + scale_ * x).log_(), factor_);
  }
  void GradientOnDevice(const Tensor& dy, const Tensor& x, const Tensor& y, Tensor& dx) override {
    device::mul_out(dx, dy, factor_ * scale_ / (shift_ + scale_ * x));
  }

 private:
  const float factor_, scale_, shift_;
};

}  // namespace

void RegisterPowers(LayerRegistry& registry) {
  registry.Add<ExpLayer>("Exp");
  registry.Add<LogLayer>("Log");
  registry.Add<PowerLayer>("Power");
}

}  // namespace hearth::caffe
