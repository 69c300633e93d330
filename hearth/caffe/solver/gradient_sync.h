// How the solvers of a data-parallel job turn their gradients into one. Implemented by the trainer;
// LocalSync is the case of one solver. All calls come from the solver's thread.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>

#include "hearth/caffe/net/param_layout.h"

namespace hearth::caffe {

class GradientSync {
 public:
  virtual ~GradientSync() = default;

  // The zeroed flat float32 tensor of layout.size elements in which the net accumulates its
  // gradient. Called once, before the first iteration.
  virtual at::Tensor AllocateDiff(const ParamLayout& layout) = 0;

  // The gradient of learnable parameter `index` is final for this iteration: it may be reduced
  // while backward goes on. Called once per parameter and iteration, before Finish, in the order in
  // which backward finishes them (which may differ between ranks without rows and ranks with rows).
  virtual void GradientReady(size_t index) = 0;

  // Leaves in the tensor the sum over ranks of all gradients, and returns the sum of the ranks'
  // weights. `local_weight` is the number of minibatches behind the local gradient, a partial one
  // counting as its share of batch_size. Throws when another rank failed.
  virtual double Finish(double local_weight) = 0;
};

// One solver alone: nothing to reduce.
class LocalSync final : public GradientSync {
 public:
  at::Tensor AllocateDiff(const ParamLayout& layout) override;
  void GradientReady(size_t index) override {}
  double Finish(double local_weight) override { return local_weight; }
};

}  // namespace hearth::caffe
