#pragma once

#include <cstddef>

#include "hearth/trainer/step/distributed_sync.h"

namespace hearth::trainer {

// Local SGD: each rank updates its weights with its own gradient, and the ranks' weights are
// averaged periodically.
class WeightAverage final : public DistributedSync {
 public:
  // `every` is the number of iterations between averages.
  WeightAverage(collective::Group& group, double timeout_s, int every)
      : DistributedSync(group, timeout_s), every_(every) {}

  caffe::Tensor AllocateDiff(const caffe::ParamLayout& layout) override;
  void GradientReady(size_t index) override {}
  // Averages `state` if an average is due. Waits and throws as Finish does.
  void Updated(bool needs_equal_weights, const State& state) override;

 private:
  void WaitForSum(Deadline deadline) override { SumControls(deadline); }
  double WeightOfGradient(double local) override;

  const int every_;
  // Since the last average: the number of updates, the minibatches of this rank (own_since_) and of
  // all ranks (all_since_), and the minibatches of all ranks in the first update (first_).
  int updates_ = 0;
  double own_since_ = 0, all_since_ = 0, first_ = 0;
};

}  // namespace hearth::trainer
