#include "hearth/caffe/solver/update_rule.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include "hearth/base/error.h"
#include "hearth/base/for_each_cpu.h"
#include "hearth/caffe/proto/nearest.h"
#include "hearth/caffe/tensor/device_ops.h"
#include "hearth/caffe/tensor/parallel.h"

namespace hearth::caffe {
namespace {

// Below this many weights, waking other threads costs more than the update.
constexpr int64_t kMinUpdateValues = 65536;

// Calls step(i, gradient) for weights [begin, end) with their regularized gradients. L1 or L2 is
// chosen outside of the loops, so that they vectorize. `step` is passed by value, so that it cannot
// alias the arrays to which it stores.
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

// One parameter of a TensorUpdate, with its regularized gradient.
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

// Computes all regularized gradients in a few kernel launches.
std::vector<Tensor> GradientsOf(const TensorUpdate& u, bool l1) {
  std::vector<Tensor> gradients = device::foreach_mul(u.diff, u.gradient_scale);
  if (u.decay != 0) {
    device::foreach_add_(gradients, l1 ? device::foreach_sign(u.data) : u.data, u.decay);
  }
  return gradients;
}

// The momentum buffer includes the learning rate, unlike in most other frameworks.
void Sgd(const RuleNumbers& n, const ParamUpdate& u, int) {
  float *data = u.data, *history = u.history[0];
  ForEachGradient(u, n.l1, [=, rate = u.rate, momentum = n.momentum](int64_t i, float gradient) {
    history[i] = rate * gradient + momentum * history[i];
    data[i] -= history[i];
  });
}

void Sgd(const RuleNumbers& n, const TensorUpdate& u, int) {
  device::foreach_mul_(u.history[0], n.momentum);
  device::foreach_add_(u.history[0], GradientsOf(u, n.l1), u.rate);
  device::foreach_sub_(u.data, u.history[0]);
}

// Gradient g, rate r, momentum m: h' = r g + m h; w -= (1 + m) h' - m h.
void Nesterov(const RuleNumbers& n, const ParamUpdate& u, int) {
  float *data = u.data, *history = u.history[0];
  ForEachGradient(u, n.l1, [=, rate = u.rate, momentum = n.momentum](int64_t i, float gradient) {
    const float before = history[i];
    history[i] = rate * gradient + momentum * before;
    data[i] -= (1 + momentum) * history[i] - momentum * before;
  });
}

void Nesterov(const RuleNumbers& n, const TensorUpdate& u, int) {
  ForEachParameter(u, n.l1, [&](const OneUpdate& one) {
    const Tensor before = one.history.clone();
    one.history.mul_(n.momentum).add_(one.gradient, u.rate);
    one.data.sub_(one.history, 1 + n.momentum).add_(before, n.momentum);
  });
}

// h += g^2; w -= r g / (sqrt(h) + delta).
void AdaGrad(const RuleNumbers& n, const ParamUpdate& u, int) {
  float *data = u.data, *history = u.history[0];
  ForEachGradient(u, n.l1, [=, rate = u.rate, delta = n.delta](int64_t i, float gradient) {
    history[i] += gradient * gradient;
    data[i] -= rate * gradient / (std::sqrt(history[i]) + delta);
  });
}

void AdaGrad(const RuleNumbers& n, const TensorUpdate& u, int) {
  ForEachParameter(u, n.l1, [&](const OneUpdate& one) {
    one.history.addcmul_(one.gradient, one.gradient);
    one.data.addcdiv_(one.gradient, one.history.sqrt().add_(n.delta), -u.rate);
  });
}

// With k = rms_decay: h = k h + (1 - k) g^2; w -= r g / (sqrt(h) + delta).
void RmsProp(const RuleNumbers& n, const ParamUpdate& u, int) {
  float *data = u.data, *history = u.history[0];
  ForEachGradient(
      u, n.l1, [=, rate = u.rate, delta = n.delta, keep = n.rms_decay](int64_t i, float gradient) {
        history[i] = keep * history[i] + (1 - keep) * gradient * gradient;
        data[i] -= rate * gradient / (std::sqrt(history[i]) + delta);
      });
}

void RmsProp(const RuleNumbers& n, const TensorUpdate& u, int) {
  ForEachParameter(u, n.l1, [&](const OneUpdate& one) {
    one.history.mul_(n.rms_decay).addcmul_(one.gradient, one.gradient, 1 - n.rms_decay);
    one.data.addcdiv_(one.gradient, one.history.sqrt().add_(n.delta), -u.rate);
  });
}

// history[0] contains squared gradients, history[1] squared updates. momentum is the decay rate of
// both.
void AdaDelta(const RuleNumbers& n, const ParamUpdate& u, int) {
  float *data = u.data, *gradients = u.history[0], *updates = u.history[1];
  ForEachGradient(
      u, n.l1, [=, rate = u.rate, keep = n.momentum, delta = n.delta](int64_t i, float gradient) {
        gradients[i] = keep * gradients[i] + (1 - keep) * gradient * gradient;
        const float update = gradient * std::sqrt((updates[i] + delta) / (gradients[i] + delta));
        updates[i] = keep * updates[i] + (1 - keep) * update * update;
        data[i] -= rate * update;
      });
}

void AdaDelta(const RuleNumbers& n, const TensorUpdate& u, int) {
  ForEachParameter(u, n.l1, [&](const OneUpdate& one) {
    const Tensor &gradient = one.gradient, &gradients = one.history;
    const Tensor& updates = one.second_history;
    gradients.mul_(n.momentum).addcmul_(gradient, gradient, 1 - n.momentum);
    const Tensor update = gradient * ((updates + n.delta) / (gradients + n.delta)).sqrt_();
    updates.mul_(n.momentum).addcmul_(update, update, 1 - n.momentum);
    one.data.sub_(update, u.rate);
  });
}

// Corrects the bias of Adam's two means, which start at zero.
double AdamCorrection(const RuleNumbers& n, int iteration) {
  const double t = iteration + 1;
  return std::sqrt(1 - std::pow(double{n.momentum2}, t)) / (1 - std::pow(double{n.momentum}, t));
}

// history[0] contains mean gradients, history[1] mean squared gradients.
void Adam(const RuleNumbers& n, const ParamUpdate& u, int iteration) {
  float *data = u.data, *mean = u.history[0], *square = u.history[1];
  const auto rate = static_cast<float>(u.rate * AdamCorrection(n, iteration));
  ForEachGradient(
      u, n.l1, [=, b1 = n.momentum, b2 = n.momentum2, delta = n.delta](int64_t i, float gradient) {
        mean[i] = b1 * mean[i] + (1 - b1) * gradient;
        square[i] = b2 * square[i] + (1 - b2) * gradient * gradient;
        data[i] -= rate * mean[i] / (std::sqrt(square[i]) + delta);
      });
}

void Adam(const RuleNumbers& n, const TensorUpdate& u, int iteration) {
  ForEachParameter(u, n.l1, [&](const OneUpdate& one) {
    const Tensor &mean = one.history, &square = one.second_history;
    mean.mul_(n.momentum).add_(one.gradient, 1 - n.momentum);
    square.mul_(n.momentum2).addcmul_(one.gradient, one.gradient, 1 - n.momentum2);
    one.data.addcdiv_(mean, square.sqrt().add_(n.delta), -u.rate * AdamCorrection(n, iteration));
  });
}

constexpr UpdateRule::Kind kKinds[] = {
    {"SGD", 1, Sgd, Sgd},
    {"Nesterov", 1, Nesterov, Nesterov},
    {"AdaGrad", 1, AdaGrad, AdaGrad},
    {"RMSProp", 1, RmsProp, RmsProp},
    {"AdaDelta", 2, AdaDelta, AdaDelta},
    {"Adam", 2, Adam, Adam},
};

}  // namespace

UpdateRule::UpdateRule(const SolverParameter& param)
    : numbers_{.l1 = param.regularization_type() == "L1",
               .momentum = param.momentum(),
               .momentum2 = param.momentum2(),
               .rms_decay = param.rms_decay(),
               .delta = param.delta()} {
  const std::string& regularization = param.regularization_type();
  Require(numbers_.l1 || regularization == "L2", ErrorCode::kInvalidArgument,
          "regularization_type must be L1 or L2, found '{}'", regularization);
  const std::string& type = param.type();
  Require(param.momentum() == 0 || (type != "AdaGrad" && type != "RMSProp"),
          ErrorCode::kInvalidArgument,
          "solver type {} does not use momentum, found momentum: {}; remove it", type,
          param.momentum());
  const auto* const found = std::ranges::find(kKinds, type, &Kind::type);
  if (found == std::end(kKinds)) {
    Throw(ErrorCode::kInvalidArgument, "unknown solver type '{}'{}", type,
          DidYouMean(type, {"SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam"}));
  }
  kind_ = found;
}

}  // namespace hearth::caffe
