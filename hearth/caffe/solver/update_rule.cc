#include "hearth/caffe/solver/update_rule.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>

#include "hearth/base/error.h"
#include "hearth/caffe/proto/nearest.h"

namespace hearth::caffe {
namespace {

// Below this many weights, waking other threads costs more than the update.
constexpr int64_t kMinUpdateValues = 65536;

// Calls step(i, gradient) for every weight, regularised. The choice between L1 and L2 is made
// outside of the loops, so that they vectorise.
template <typename Step>
void ForEachGradient(const ParamUpdate& u, bool l1, Step step_of_all) {
  at::parallel_for(0, u.count, kMinUpdateValues, [&](int64_t begin, int64_t end) {
    const Step step = step_of_all;  // a copy, which stores to the arrays cannot alias
    const float *diff = u.diff, *data = u.data;
    const float scale = u.gradient_scale, decay = u.decay;
    if (decay == 0) {
      for (int64_t i = begin; i < end; ++i) step(i, diff[i] * scale);
    } else if (l1) {
      for (int64_t i = begin; i < end; ++i) {
        const float sign = static_cast<float>(data[i] > 0) - static_cast<float>(data[i] < 0);
        step(i, diff[i] * scale + decay * sign);
      }
    } else {
      for (int64_t i = begin; i < end; ++i) step(i, diff[i] * scale + decay * data[i]);
    }
  });
}

// The regularised gradient.
at::Tensor GradientOf(const TensorUpdate& u, bool l1) {
  at::Tensor gradient = u.diff * u.gradient_scale;
  if (u.decay != 0) gradient.add_(l1 ? u.data.sign() : u.data, u.decay);
  return gradient;
}

class RuleBase : public UpdateRule {
 public:
  explicit RuleBase(const SolverParameter& param)
      : l1_(param.regularization_type() == "L1"),
        momentum_(param.momentum()),
        delta_(param.delta()) {}

 protected:
  bool l1_;
  float momentum_, delta_;
};

// The learning rate is inside the momentum, unlike in most other frameworks.
class Sgd final : public RuleBase {
 public:
  using RuleBase::RuleBase;
  void Apply(const ParamUpdate& u, int iteration) const override {
    float *data = u.data, *history = u.history[0];
    ForEachGradient(u, l1_, [=, rate = u.rate, momentum = momentum_](int64_t i, float gradient) {
      history[i] = rate * gradient + momentum * history[i];
      data[i] -= history[i];
    });
  }
  void Apply(const TensorUpdate& u, int) const override {
    u.history[0].mul_(momentum_).add_(GradientOf(u, l1_), u.rate);
    u.data.sub_(u.history[0]);
  }
};

class Nesterov final : public RuleBase {
 public:
  using RuleBase::RuleBase;
  void Apply(const ParamUpdate& u, int iteration) const override {
    float *data = u.data, *history = u.history[0];
    ForEachGradient(u, l1_, [=, rate = u.rate, momentum = momentum_](int64_t i, float gradient) {
      const float before = history[i];
      history[i] = rate * gradient + momentum * before;
      data[i] -= (1 + momentum) * history[i] - momentum * before;
    });
  }
  void Apply(const TensorUpdate& u, int) const override {
    const at::Tensor before = u.history[0].clone();
    u.history[0].mul_(momentum_).add_(GradientOf(u, l1_), u.rate);
    u.data.sub_(u.history[0], 1 + momentum_).add_(before, momentum_);
  }
};

class AdaGrad final : public RuleBase {
 public:
  using RuleBase::RuleBase;
  void Apply(const ParamUpdate& u, int iteration) const override {
    float *data = u.data, *history = u.history[0];
    ForEachGradient(u, l1_, [=, rate = u.rate, delta = delta_](int64_t i, float gradient) {
      history[i] += gradient * gradient;
      data[i] -= rate * gradient / (std::sqrt(history[i]) + delta);
    });
  }
  void Apply(const TensorUpdate& u, int) const override {
    const at::Tensor gradient = GradientOf(u, l1_);
    u.history[0].addcmul_(gradient, gradient);
    u.data.addcdiv_(gradient, u.history[0].sqrt().add_(delta_), -u.rate);
  }
};

class RmsProp final : public RuleBase {
 public:
  explicit RmsProp(const SolverParameter& param) : RuleBase(param), keep_(param.rms_decay()) {}
  void Apply(const ParamUpdate& u, int iteration) const override {
    float *data = u.data, *history = u.history[0];
    ForEachGradient(u, l1_,
                    [=, rate = u.rate, delta = delta_, keep = keep_](int64_t i, float gradient) {
                      history[i] = keep * history[i] + (1 - keep) * gradient * gradient;
                      data[i] -= rate * gradient / (std::sqrt(history[i]) + delta);
                    });
  }
  void Apply(const TensorUpdate& u, int) const override {
    const at::Tensor gradient = GradientOf(u, l1_);
    u.history[0].mul_(keep_).addcmul_(gradient, gradient, 1 - keep_);
    u.data.addcdiv_(gradient, u.history[0].sqrt().add_(delta_), -u.rate);
  }

 private:
  float keep_;
};

// history[0]: squared gradients; history[1]: squared updates. momentum is the decay of both.
class AdaDelta final : public RuleBase {
 public:
  using RuleBase::RuleBase;
  int history_count() const override { return 2; }
  void Apply(const ParamUpdate& u, int iteration) const override {
    float* data = u.data;
    float *gradients = u.history[0], *updates = u.history[1];
    ForEachGradient(
        u, l1_, [=, rate = u.rate, keep = momentum_, delta = delta_](int64_t i, float gradient) {
          gradients[i] = keep * gradients[i] + (1 - keep) * gradient * gradient;
          const float update = gradient * std::sqrt((updates[i] + delta) / (gradients[i] + delta));
          updates[i] = keep * updates[i] + (1 - keep) * update * update;
          data[i] -= rate * update;
        });
  }
  void Apply(const TensorUpdate& u, int) const override {
    const at::Tensor gradient = GradientOf(u, l1_);
    const at::Tensor &gradients = u.history[0], &updates = u.history[1];
    gradients.mul_(momentum_).addcmul_(gradient, gradient, 1 - momentum_);
    const at::Tensor update = gradient * ((updates + delta_) / (gradients + delta_)).sqrt_();
    updates.mul_(momentum_).addcmul_(update, update, 1 - momentum_);
    u.data.sub_(update, u.rate);
  }
};

// history[0]: mean gradients; history[1]: mean squared gradients.
class Adam final : public RuleBase {
 public:
  explicit Adam(const SolverParameter& param) : RuleBase(param), momentum2_(param.momentum2()) {}
  int history_count() const override { return 2; }
  void Apply(const ParamUpdate& u, int iteration) const override {
    float* data = u.data;
    float *mean = u.history[0], *square = u.history[1];
    const auto rate = static_cast<float>(u.rate * Correction(iteration));
    ForEachGradient(
        u, l1_, [=, b1 = momentum_, b2 = momentum2_, delta = delta_](int64_t i, float gradient) {
          mean[i] = b1 * mean[i] + (1 - b1) * gradient;
          square[i] = b2 * square[i] + (1 - b2) * gradient * gradient;
          data[i] -= rate * mean[i] / (std::sqrt(square[i]) + delta);
        });
  }

  void Apply(const TensorUpdate& u, int iteration) const override {
    const at::Tensor gradient = GradientOf(u, l1_);
    const at::Tensor &mean = u.history[0], &square = u.history[1];
    mean.mul_(momentum_).add_(gradient, 1 - momentum_);
    square.mul_(momentum2_).addcmul_(gradient, gradient, 1 - momentum2_);
    u.data.addcdiv_(mean, square.sqrt().add_(delta_), -u.rate * Correction(iteration));
  }

 private:
  // Of the two means, which begin at zero.
  double Correction(int iteration) const {
    const double t = iteration + 1;
    return std::sqrt(1 - std::pow(double{momentum2_}, t)) / (1 - std::pow(double{momentum_}, t));
  }

  float momentum2_;
};

template <typename Rule>
std::unique_ptr<UpdateRule> Make(const SolverParameter& param) {
  return std::make_unique<Rule>(param);
}

void RequireNoMomentum(const SolverParameter& param) {
  Require(param.momentum() == 0, ErrorCode::kInvalidArgument,
          "solver type {} does not use momentum, found momentum: {}; remove it", param.type(),
          param.momentum());
}

}  // namespace

std::unique_ptr<UpdateRule> MakeUpdateRule(const SolverParameter& param) {
  const std::string& regularization = param.regularization_type();
  Require(regularization == "L1" || regularization == "L2", ErrorCode::kInvalidArgument,
          "regularization_type must be L1 or L2, found '{}'", regularization);
  const std::string& type = param.type();
  if (type == "AdaGrad" || type == "RMSProp") RequireNoMomentum(param);
  if (type == "SGD") return Make<Sgd>(param);
  if (type == "Nesterov") return Make<Nesterov>(param);
  if (type == "AdaGrad") return Make<AdaGrad>(param);
  if (type == "RMSProp") return Make<RmsProp>(param);
  if (type == "AdaDelta") return Make<AdaDelta>(param);
  if (type == "Adam") return Make<Adam>(param);
  Throw(ErrorCode::kInvalidArgument, "there is no solver type '{}'{}", type,
        DidYouMean(type, {"SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam"}));
}

}  // namespace hearth::caffe
