// Caffe's six update rules, each in one pass over memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hearth/caffe/net/tensor.h"
#include "hearth/caffe/proto/messages.h"

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

// Updates one parameter by its gradient. Stateless: the history belongs to the caller.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  virtual int history_count() const { return 1; }
  // Updates data and history. `iteration` counts from 0. Uses ParallelFor's threads.
  virtual void Apply(const ParamUpdate& update, int iteration) const = 0;
  // By ATen's kernels.
  virtual void Apply(const TensorUpdate& update, int iteration) const = 0;
};

// Rule of SolverParameter.type: SGD, Nesterov, AdaGrad, RMSProp, AdaDelta or Adam.
std::unique_ptr<UpdateRule> MakeUpdateRule(const SolverParameter& param);

}  // namespace hearth::caffe
