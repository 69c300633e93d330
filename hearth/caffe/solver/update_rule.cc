#include "hearth/caffe/solver/update_rule.h"

#include <cmath>

#include "hearth/base/error.h"
#include "hearth/base/for_each_cpu.h"
#include "hearth/caffe/net/device_ops.h"
#include "hearth/caffe/net/parallel.h"
#include "hearth/caffe/proto/nearest.h"

namespace hearth::caffe {
namespace {

// Below this many weights, waking other threads costs more than the update.
constexpr int64_t kMinUpdateValues = 65536;

// Calls step(i, gradient) for weights [begin, end) with their regularized gradients. L1 or L2 is
// chosen outside of the loops, so that they vectorize; `step` is a copy, which cannot alias the
// arrays that it stores to.
template <typename Step>
HEARTH_FOR_EACH_CPU void StepRange(const ParamUpdate& u, bool l1, Step step, int64_t begin,
                                   int64_t end) {
  const float *diff = u.diff, *data = u.data;
  const float scale = u.gradient_scale, decay = u.decay;
  if (decay == 0) {
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) step(i, diff[i] * scale);
  } else if (l1) {
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) {
      const float sign = static_cast<float>(data[i] > 0) - static_cast<float>(data[i] < 0);
      step(i, diff[i] * scale + decay * sign);
    }
  } else {
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) step(i, diff[i] * scale + decay * data[i]);
  }
}

template <typename Step>
void ForEachGradient(const ParamUpdate& u, bool l1, Step step) {
  ParallelFor(0, u.count, kMinUpdateValues,
              [&](int64_t begin, int64_t end) { StepRange(u, l1, step, begin, end); });
}

// One parameter of a TensorUpdate, with its regularised gradient.
struct OneUpdate {
  Tensor data, gradient, history, second_history;
};

Tensor GradientOf(const TensorUpdate& u, size_t i, bool l1) {
  Tensor gradient = u.diff[i] * u.gradient_scale;
  if (u.decay != 0) gradient.add_(l1 ? u.data[i].sign() : u.data[i], u.decay);
  return gradient;
}

template <typename Step>
void ForEachParameter(const TensorUpdate& u, bool l1, Step step) {
  for (size_t i = 0; i < u.data.size(); ++i) {
    step(OneUpdate{u.data[i], GradientOf(u, i, l1), u.history[0][i],
                   u.history[1].empty() ? Tensor() : u.history[1][i]});
  }
}

// All regularized gradients, in a few launches.
std::vector<Tensor> GradientsOf(const TensorUpdate& u, bool l1) {
  std::vector<Tensor> gradients = device::foreach_mul(u.diff, u.gradient_scale);
  if (u.decay != 0) {
    device::foreach_add_(gradients, l1 ? device::foreach_sign(u.data) : u.data, u.decay);
  }
  return gradients;
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

// The momentum buffer includes the learning rate, unlike in most other frameworks.
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
    device::foreach_mul_(u.history[0], momentum_);
    device::foreach_add_(u.history[0], GradientsOf(u, l1_), u.rate);
    device::foreach_sub_(u.data, u.history[0]);
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
    ForEachParameter(u, l1_, [&](const OneUpdate& one) {
      const Tensor before = one.history.clone();
      one.history.mul_(momentum_).add_(one.gradient, u.rate);
      one.data.sub_(one.history, 1 + momentum_).add_(before, momentum_);
    });
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
    ForEachParameter(u, l1_, [&](const OneUpdate& one) {
      one.history.addcmul_(one.gradient, one.gradient);
      one.data.addcdiv_(one.gradient, one.history.sqrt().add_(delta_), -u.rate);
    });
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
    ForEachParameter(u, l1_, [&](const OneUpdate& one) {
      one.history.mul_(keep_).addcmul_(one.gradient, one.gradient, 1 - keep_);
      one.data.addcdiv_(one.gradient, one.history.sqrt().add_(delta_), -u.rate);
    });
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
    ForEachParameter(u, l1_, [&](const OneUpdate& one) {
      const Tensor &gradient = one.gradient, &gradients = one.history;
      const Tensor& updates = one.second_history;
      gradients.mul_(momentum_).addcmul_(gradient, gradient, 1 - momentum_);
      const Tensor update = gradient * ((updates + delta_) / (gradients + delta_)).sqrt_();
      updates.mul_(momentum_).addcmul_(update, update, 1 - momentum_);
      one.data.sub_(update, u.rate);
    });
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
    ForEachParameter(u, l1_, [&](const OneUpdate& one) {
      const Tensor &mean = one.history, &square = one.second_history;
      mean.mul_(momentum_).add_(one.gradient, 1 - momentum_);
      square.mul_(momentum2_).addcmul_(one.gradient, one.gradient, 1 - momentum2_);
      one.data.addcdiv_(mean, square.sqrt().add_(delta_), -u.rate * Correction(iteration));
    });
  }

 private:
  // Corrects the bias of the two means, which start at zero.
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
  Throw(ErrorCode::kInvalidArgument, "unknown solver type '{}'{}", type,
        DidYouMean(type, {"SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam"}));
}

}  // namespace hearth::caffe
