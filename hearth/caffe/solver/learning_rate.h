#pragma once

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Caffe's seven learning rate policies: fixed, step, exp, inv, multistep, poly, sigmoid.
class LearningRate {
 public:
  // Throws kInvalidArgument for an unknown policy or a missing number. Stores a copy of `param`.
  explicit LearningRate(const SolverParameter& param);

  // Returns the rate at `iteration`. As in Caffe, step and multistep remember their current step,
  // and multistep advances by at most one step per call.
  float At(int iteration);

  void set_base_lr(float base_lr) { param_.set_base_lr(base_lr); }
  int current_step() const { return current_step_; }
  void set_current_step(int step) { current_step_ = step; }

 private:
  SolverParameter param_;
  int current_step_ = 0;
};

}  // namespace hearth::caffe
