// Combines the training of all ranks, and carries a few control values with each step, so that all
// ranks make the same decisions at the same iteration.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/caffe/solver/gradient_sync.h"
#include "hearth/collective/bucket_reducer.h"
#include "hearth/collective/group.h"

namespace hearth::trainer {

// One of HostGradientSum, DeviceGradientSum and WeightAverage. Used by one solver's thread, except
// RequestStop (any thread). `group` must outlive it and the tensor that AllocateDiff returned.
class DistributedSync : public caffe::GradientSync {
 public:
  // Waits for the other ranks, for at most `timeout_s`. Throws as Group::Run does.
  Result Finish(double local_weight) final;

  // All ranks stop, or write a snapshot, at the first Finish after a request on any rank.
  void RequestStop() { stop_requested_ = true; }
  void RequestSnapshot() { snapshot_requested_ = true; }

  // Counts a row of this rank that was skipped since the last Finish. The solver's thread only.
  void AddInvalidRow() { invalid_rows_ += 1; }
  // Invalid rows of all ranks in the last Finish.
  int64_t total_invalid_rows() const { return total_invalid_rows_; }

  // Minibatches behind the gradient of the last Finish.
  double gradient_weight() const { return gradient_weight_; }
  // Minibatches of all ranks in the last Finish; partial ones count as their share of batch_size.
  double total_weight() const { return total_weight_; }

  // Time that the last iteration waited for other ranks' gradients or weights, beyond what backward
  // overlapped.
  double wait_s() const { return wait_s_; }

 protected:
  // The control values fill a cache line, so that gradients behind them stay aligned.
  static constexpr int64_t kControls = caffe::ParamLayout::kAlignment;

  // `timeout_s`: time that a rank may be behind the others, including the wait for its feeder.
  DistributedSync(collective::Group& group, double timeout_s)
      : group_(group), timeout_s_(timeout_s) {}

  collective::Group& group() { return group_; }
  Deadline deadline() const { return Deadline::After(timeout_s_); }
  // The control values of this rank until they are summed: `kControls` floats, which the class
  // provides in AllocateDiff.
  void set_controls(float* controls) { controls_ = controls; }
  // Allocates separate memory for them.
  void AllocateControls();
  // Sums the control values over all ranks. Throws as Group::Run does.
  void SumControls(Deadline deadline);
  std::unique_ptr<collective::BucketReducer> MakeReducer(float* buffer,
                                                         const std::vector<size_t>& sizes,
                                                         collective::Memory memory);
  void AddWait(double seconds) { wait_s_ += seconds; }

  // Sums the control values over all ranks and completes what they sum with them. Throws as
  // Group::Run does.
  virtual void WaitForSum(Deadline deadline) = 0;
  // Minibatches behind this rank's gradient after the sum, of which `local` are its own.
  virtual double WeightOfGradient(double local) { return total_weight_; }

 private:
  collective::Group& group_;
  const double timeout_s_;
  std::atomic<bool> stop_requested_{false}, snapshot_requested_{false};
  double total_weight_ = 0, gradient_weight_ = 0, wait_s_ = 0;
  float invalid_rows_ = 0;
  int64_t total_invalid_rows_ = 0;
  std::vector<float> own_controls_;
  float* controls_ = nullptr;
};

// Padded floats of each parameter in a flat buffer of the layout.
std::vector<size_t> PaddedSizes(const caffe::ParamLayout& layout);

// `every`: iterations between averages of the weights; 1 sums the gradients instead. `gpus`: the
// group has opened the ranks' GPUs, on which all nets compute.
std::unique_ptr<DistributedSync> MakeDistributedSync(collective::Group& group, double timeout_s,
                                                     int every = 1, bool gpus = false);

}  // namespace hearth::trainer
