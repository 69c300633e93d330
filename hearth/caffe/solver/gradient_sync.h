#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "hearth/caffe/net/param_layout.h"
#include "hearth/caffe/tensor/tensor.h"

namespace hearth::caffe {

// Interface with which the solvers of a data-parallel job combine their gradients. The trainer
// implements it; LocalSync is for a single solver. All calls are made on the solver's thread.
class GradientSync {
 public:
  virtual ~GradientSync() = default;

  // Returns the zeroed flat float32 tensor of layout.size elements in which the net accumulates its
  // gradient. Called once, before the first iteration.
  virtual Tensor AllocateDiff(const ParamLayout& layout) = 0;

  // Called once after AllocateDiff if the net computes on a device with separate memory; `diff` is
  // its flat gradient there. Returns true if the gradient is reduced on the device, in which case
  // GradientReady refers to `diff`.
  virtual bool TakeDeviceDiff(const Tensor& diff) { return false; }

  // The gradient of learnable parameter `index` is final for this iteration and may be reduced
  // while backward continues. Called once per parameter and iteration, before Finish, in the order
  // in which backward finishes the gradients. That order may differ between ranks with and without
  // rows.
  virtual void GradientReady(size_t index) = 0;

  // Weights of a summed gradient, and the ranks' requests.
  struct Result {
    // Numbers of minibatches: `all` counts those of all ranks, and `summed` those whose gradients
    // are in the tensor. They are equal if the tensor contains the sum over the ranks.
    double all = 0;
    double summed = 0;
    // True if any rank requested it. All ranks receive a request in the same iteration.
    bool stop = false, snapshot = false;
  };
  // `local_weight` is the number of minibatches summed in the local gradient. A partial minibatch
  // counts as its fraction of batch_size. Throws if another rank failed.
  virtual Result Finish(double local_weight) = 0;

  // A function that returns the flat weights and history of the solver.
  using State = std::function<std::vector<Tensor>()>;
  // Called after the weights have been updated. `needs_equal_weights`: the weights will be used
  // before the next update (by a snapshot, a test, or because training ends). May change the
  // tensors of `state`.
  virtual void Updated(bool needs_equal_weights, const State& state) {}
};

// The GradientSync of a single solver, which reduces nothing.
class LocalSync final : public GradientSync {
 public:
  Tensor AllocateDiff(const ParamLayout& layout) override { return Tensor::Zeros({layout.size}); }
  void GradientReady(size_t index) override {}
  Result Finish(double local_weight) override { return {local_weight, local_weight}; }
};

}  // namespace hearth::caffe
