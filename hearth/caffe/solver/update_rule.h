// Caffe's six update rules, each in one pass over memory.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/tensor/tensor.h"

namespace hearth::caffe {

// One learnable parameter in one iteration. Its regularized gradient is
//   diff * gradient_scale + decay * weight, with the weight's sign instead of the weight for L1.
struct ParamUpdate {
  float* data;
  const float* diff;
  float* history[2];  // the first history_count() are used
  int64_t count;
  float gradient_scale;
  float rate;   // learning rate * lr_mult
  float decay;  // weight_decay * decay_mult
};

// Like ParamUpdate, but for any number of parameters with equal rate and decay, as flat tensors on
// any device.
struct TensorUpdate {
  std::vector<Tensor> data, diff;
  std::vector<Tensor> history[2];
  float gradient_scale, rate, decay;
};

// The numbers in a solver's prototxt that the rules use.
struct RuleNumbers {
  bool l1;
  float momentum, momentum2, rms_decay, delta;
};

// Updates data and history of parameters by their gradients. Stateless: the caller owns the
// history. `iteration` counts from 0.
class UpdateRule {
 public:
  // Selects the rule by SolverParameter.type: SGD, Nesterov, AdaGrad, RMSProp, AdaDelta or Adam.
  // Throws kInvalidArgument for another type or regularization_type, or if AdaGrad or RMSProp has a
  // momentum.
  explicit UpdateRule(const SolverParameter& param);

  int history_count() const { return kind_->history_count; }
  // Runs on ParallelFor's threads.
  void Apply(const ParamUpdate& update, int iteration) const {
    kind_->on_host(numbers_, update, iteration);
  }
  // Runs ATen's kernels.
  void Apply(const TensorUpdate& update, int iteration) const {
    kind_->on_device(numbers_, update, iteration);
  }

  // The implementation of a rule.
  struct Kind {
    std::string_view type;
    int history_count;
    void (*on_host)(const RuleNumbers& numbers, const ParamUpdate& update, int iteration);
    void (*on_device)(const RuleNumbers& numbers, const TensorUpdate& update, int iteration);
  };

 private:
  const RuleNumbers numbers_;
  const Kind* kind_;
};

}  // namespace hearth::caffe
