#include "hearth/caffe/solver/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/proto/nearest.h"

namespace hearth::caffe {
namespace {

struct Policy {
  const char* name;
  // The solver's fields that must be above 0 for this policy.
  std::initializer_list<const char*> needs;
};

const Policy kPolicies[] = {
    {"fixed", {}},          {"step", {"stepsize"}},    {"exp", {}}, {"inv", {}}, {"multistep", {}},
    {"poly", {"max_iter"}}, {"sigmoid", {"stepsize"}},
};

void CheckPolicy(const SolverParameter& param) {
  std::vector<std::string> known;
  for (const Policy& policy : kPolicies) {
    known.emplace_back(policy.name);
    if (param.lr_policy() != policy.name) continue;
    for (const std::string need : policy.needs) {
      const int32_t value = need == "max_iter" ? param.max_iter() : param.stepsize();
      Require(value > 0, ErrorCode::kInvalidArgument,
              "lr_policy '{}' needs a {} above 0, found {}; set it in the solver's prototxt",
              policy.name, need, value);
    }
    return;
  }
  Throw(ErrorCode::kInvalidArgument, "unknown lr_policy '{}'{}", param.lr_policy(),
        DidYouMean(param.lr_policy(), known));
}

}  // namespace

LearningRate::LearningRate(const SolverParameter& param) : param_(param) { CheckPolicy(param_); }

float LearningRate::At(int iteration) {
  // SGDSolver::GetLearningRate of Caffe, at iteration t:
  //   step       base * gamma^floor(t / stepsize)
  //   exp        base * gamma^t
  //   inv        base * (1 + gamma * t)^-power
  //   multistep  base * gamma^k, after k of the stepvalues
  //   poly       base * (1 - t / max_iter)^power
  //   sigmoid    base / (1 + e^(-gamma * (t - stepsize)))
  const std::string& policy = param_.lr_policy();
  const double base = param_.base_lr(), gamma = param_.gamma(), power = param_.power();
  double rate = base;
  if (policy == "step") {
    current_step_ = iteration / param_.stepsize();
    rate = base * std::pow(gamma, current_step_);
  } else if (policy == "exp") {
    rate = base * std::pow(gamma, iteration);
  } else if (policy == "inv") {
    rate = base * std::pow(1 + gamma * iteration, -power);
  } else if (policy == "multistep") {
    if (current_step_ < param_.stepvalue_size() && iteration >= param_.stepvalue(current_step_)) {
      ++current_step_;
    }
    rate = base * std::pow(gamma, current_step_);
  } else if (policy == "poly") {
    rate = base * std::pow(1 - static_cast<double>(iteration) / param_.max_iter(), power);
  } else if (policy == "sigmoid") {
    rate = base / (1 + std::exp(-gamma * (iteration - param_.stepsize())));
  }
  return static_cast<float>(rate);
}

}  // namespace hearth::caffe
