#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "hearth/caffe/net/param_layout.h"
#include "hearth/caffe/tensor/tensor.h"

namespace hearth::caffe {

// Interface by which the solvers of a data-parallel job combine their gradients. Implemented by the
// trainer; LocalSync is for a single solver. All calls come from the solver's thread.
class GradientSync {
 public:
  virtual ~GradientSync() = default;

  // Returns the zeroed flat float32 tensor of layout.size elements in which the net accumulates its
  // gradient. Called once, before the first iteration.
  virtual Tensor AllocateDiff(const ParamLayout& layout) = 0;

  // If the net computes on a device with its own memory: passes its flat gradient there, once after
  // AllocateDiff. Returns true if the gradient is reduced on the device; GradientReady then refers
  // to that one.
  virtual bool TakeDeviceDiff(const Tensor& diff) { return false; }

  // The gradient of learnable parameter `index` is final for this iteration and may be reduced
  // while backward continues. Called once per parameter and iteration, before Finish, in the order
  // in which backward finishes them (which may differ between ranks without rows and ranks with
  // rows).
  virtual void GradientReady(size_t index) = 0;

  // Weights of a summed gradient, and requests of the ranks.
  struct Result {
    // Weights of the gradient in the tensor: the number of minibatches of all ranks, and the number
    // behind this gradient (all of them if it is the sum over ranks).
    double all = 0;
    double summed = 0;
    // Requested by any rank: all of them get it in the same iteration.
    bool stop = false, snapshot = false;
  };
  // `local_weight` is the number of minibatches behind the local gradient; a partial one counts as
  // its share of batch_size. Throws if another rank failed.
  virtual Result Finish(double local_weight) = 0;

  // Returns the flat weights and history of the solver.
  using State = std::function<std::vector<Tensor>()>;
  // The weights have been updated. `needs_equal_weights`: they are used before the next update (a
  // snapshot, a test, the end). May change the tensors of `state`.
  virtual void Updated(bool needs_equal_weights, const State& state) {}
};

// For a single solver: nothing to reduce.
class LocalSync final : public GradientSync {
 public:
  Tensor AllocateDiff(const ParamLayout& layout) override { return Tensor::Zeros({layout.size}); }
  void GradientReady(size_t index) override {}
  Result Finish(double local_weight) override { return {local_weight, local_weight}; }
};

}  // namespace hearth::caffe
