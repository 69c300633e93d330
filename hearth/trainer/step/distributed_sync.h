// Combines the training of all ranks, and exchanges a few control values with each step, so that
// all ranks make the same decisions at the same iteration.
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

// Base class of HostGradientSum, DeviceGradientSum and WeightAverage. Used by one solver's thread,
// except that any thread may call RequestStop and RequestSnapshot. `group` must outlive the object
// and the tensor that AllocateDiff returned.
class DistributedSync : public caffe::GradientSync {
 public:
  // Waits for the other ranks, for at most `timeout_s`. Throws as Group::Run does.
  Result Finish(double local_weight) final;

  // Make all ranks stop, or write a snapshot, at the next Finish. One rank's request is enough.
  void RequestStop() { stop_requested_ = true; }
  void RequestSnapshot() { snapshot_requested_ = true; }

  // Counts a row of this rank that was skipped since the last Finish. Called by the solver's thread
  // only.
  void AddInvalidRow() { invalid_rows_ += 1; }
  // Invalid rows of all ranks, as summed by the last Finish.
  int64_t total_invalid_rows() const { return total_invalid_rows_; }

  // Number of minibatches over which this rank's gradient is summed after the last Finish.
  double gradient_weight() const { return gradient_weight_; }
  // Minibatches of all ranks in the last Finish. A partial minibatch counts as its fraction of
  // batch_size.
  double total_weight() const { return total_weight_; }

  // Seconds that the last iteration waited for other ranks' gradients or weights after backward had
  // finished.
  double wait_s() const { return wait_s_; }

 protected:
  // The control values fill a cache line, so that gradients behind them stay aligned.
  static constexpr int64_t kControls = caffe::ParamLayout::kAlignment;

  // `timeout_s` limits how long a rank may be behind the others, including the wait for its feeder.
  DistributedSync(collective::Group& group, double timeout_s)
      : group_(group), timeout_s_(timeout_s) {}

  collective::Group& group() { return group_; }
  Deadline deadline() const { return Deadline::After(timeout_s_); }
  // Sets the memory of the control values: `kControls` floats, which contain this rank's values
  // and, after WaitForSum, the sums. Derived classes call it, or AllocateControls, in AllocateDiff.
  void set_controls(float* controls) { controls_ = controls; }
  // Allocates separate memory for the control values.
  void AllocateControls();
  // Sums the control values over all ranks. Throws as Group::Run does.
  void SumControls(Deadline deadline);
  std::unique_ptr<collective::BucketReducer> MakeReducer(float* buffer,
                                                         const std::vector<size_t>& sizes,
                                                         collective::Memory memory);
  void AddWait(double seconds) { wait_s_ += seconds; }

  // Sums the control values over all ranks and, in gradient sums, waits until the gradients are
  // summed. Throws as Group::Run does.
  virtual void WaitForSum(Deadline deadline) = 0;
  // Number of minibatches over which this rank's gradient is summed after WaitForSum; `local` of
  // them are this rank's own.
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

// `every` is the number of iterations between averages of the weights; with 1, gradients are summed
// instead. `gpus` is true if the group has opened the ranks' GPUs, on which all nets compute.
std::unique_ptr<DistributedSync> MakeDistributedSync(collective::Group& group, double timeout_s,
                                                     int every = 1, bool gpus = false);

}  // namespace hearth::trainer
