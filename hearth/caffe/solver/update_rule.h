// Caffe's six update rules, each in one pass over memory.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/tensor/tensor.h"

namespace hearth::caffe {

// One learnable parameter in one iteration. The gradient is diff * gradient_scale + decay *
// (weight, or its sign for L1).
struct ParamUpdate {
  float* data;
  const float* diff;
  float* history[2];  // history_count() of them
  int64_t count;
  float gradient_scale;
  float rate;   // learning rate * lr_mult
  float decay;  // weight_decay * decay_mult
};

// The same for any number of parameters with equal rates, as flat tensors on any device.
struct TensorUpdate {
  std::vector<Tensor> data, diff;
  std::vector<Tensor> history[2];
  float gradient_scale, rate, decay;
};

// The numbers of a solver's prototxt that rules use.
struct RuleNumbers {
  bool l1;
  float momentum, momentum2, rms_decay, delta;
};

// Updates data and history of parameters by their gradients. Stateless: the history belongs to the
// caller. `iteration` counts from 0.
class UpdateRule {
 public:
  // The rule of SolverParameter.type: SGD, Nesterov, AdaGrad, RMSProp, AdaDelta or Adam. Throws
  // kInvalidArgument for another type or regularization_type, and for a momentum of AdaGrad or
  // RMSProp.
  explicit UpdateRule(const SolverParameter& param);

  int history_count() const { return kind_->history_count; }
  // Uses ParallelFor's threads.
  void Apply(const ParamUpdate& update, int iteration) const {
    kind_->on_host(numbers_, update, iteration);
  }
  // By ATen's kernels.
  void Apply(const TensorUpdate& update, int iteration) const {
    kind_->on_device(numbers_, update, iteration);
  }

  // A type's implementation.
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
