// How the solvers of a data-parallel job turn their gradients into one. Implemented by the trainer;
// LocalSync is the case of one solver. All calls come from the solver's thread.
#pragma once

#include <cstddef>

#include "hearth/caffe/net/param_layout.h"

namespace hearth::caffe {

class GradientSync {
 public:
  virtual ~GradientSync() = default;

  // The zeroed flat float32 tensor of layout.size elements in which the net accumulates its
  // gradient. Called once, before the first iteration.
  virtual Tensor AllocateDiff(const ParamLayout& layout) = 0;

  // Where the net computes on a device with memory of its own: its flat gradient there, given once
  // after AllocateDiff. True: it is reduced there, and is what GradientReady speaks of.
  virtual bool TakeDeviceDiff(const Tensor& diff) { return false; }

  // The gradient of learnable parameter `index` is final for this iteration: it may be reduced
  // while backward goes on. Called once per parameter and iteration, before Finish, in the order in
  // which backward finishes them (which may differ between ranks without rows and ranks with rows).
  virtual void GradientReady(size_t index) = 0;

  // What the gradient in the tensor stands for: the number of minibatches of all ranks, and of
  // those behind this gradient (all of them where it is the sum over ranks).
  struct Weights {
    double all = 0;
    double summed = 0;
  };
  // `local_weight` is the number of minibatches behind the local gradient, a partial one counting
  // as its share of batch_size. Throws when another rank failed.
  virtual Weights Finish(double local_weight) = 0;

  // The weights have been updated; `shown`: they are looked at before the next update (a snapshot,
  // a test, the end), so they must be those of all ranks.
  virtual void Updated(bool shown) {}
};

// One solver alone: nothing to reduce.
class LocalSync final : public GradientSync {
 public:
  Tensor AllocateDiff(const ParamLayout& layout) override;
  void GradientReady(size_t index) override {}
  Weights Finish(double local_weight) override { return {local_weight, local_weight}; }
};

}  // namespace hearth::caffe
