#pragma once

#include <cstddef>

#include "hearth/trainer/step/distributed_sync.h"

namespace hearth::trainer {

// Local SGD: each rank updates by its own gradient, and the ranks' weights are averaged
// periodically.
class WeightAverage final : public DistributedSync {
 public:
  // `every`: iterations between averages.
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
  // Since the last average: updates, minibatches of this rank and of all ranks, and those of all in
  // the first update.
  int updates_ = 0;
  double own_since_ = 0, all_since_ = 0, first_ = 0;
};

}  // namespace hearth::trainer
