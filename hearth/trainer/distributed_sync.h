// Sums the gradients of all ranks while backward still runs, and carries a few control values in
// the same all-reduce, so that all ranks make the same decisions at the same iteration. Or (local
// SGD) lets each rank update by its own gradient and averages the ranks' weights periodically.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/caffe/solver/gradient_sync.h"
#include "hearth/collective/bucket_reducer.h"
#include "hearth/collective/group.h"

namespace hearth::trainer {

// Used by one solver's thread, except RequestStop (any thread). `group` must outlive it and the
// tensor that AllocateDiff returned.
class DistributedSync final : public caffe::GradientSync {
 public:
  // `timeout_s`: time that a rank may be behind the others, including the wait for its feeder.
  // `every`: iterations between averages of the weights; 1 sums the gradients instead.
  // `gpus`: the group has opened the ranks' GPUs, on which all nets compute.
  DistributedSync(collective::Group& group, double timeout_s, int every = 1, bool gpus = false)
      : group_(group), timeout_s_(timeout_s), every_(every), on_device_(gpus && every == 1) {}

  caffe::Tensor AllocateDiff(const caffe::ParamLayout& layout) override;
  bool TakeDeviceDiff(const caffe::Tensor& diff) override;
  void GradientReady(size_t index) override;
  Weights Finish(double local_weight) override;
  void Updated(bool shown) override;

  // State that each rank updates by itself in local SGD: flat weights and history.
  void set_averaged(std::function<std::vector<caffe::Tensor>()> averaged) {
    averaged_ = std::move(averaged);
  }

  // All ranks call `on_stop` in the first Finish after a RequestStop on any rank.
  void RequestStop() { stop_requested_ = true; }
  void set_on_stop(std::function<void()> on_stop) { on_stop_ = std::move(on_stop); }

  // The same for a snapshot.
  void RequestSnapshot() { snapshot_requested_ = true; }
  void set_on_snapshot(std::function<void()> on_snapshot) { on_snapshot_ = std::move(on_snapshot); }

  // Counts a row of this rank that was skipped since the last Finish. The solver's thread only.
  void AddInvalidRow() { invalid_rows_ += 1; }
  // Invalid rows of all ranks in the last Finish.
  int64_t total_invalid_rows() const { return total_invalid_rows_; }
  // Called at the end of every Finish.
  void set_on_finish(std::function<void()> on_finish) { on_finish_ = std::move(on_finish); }

  // Minibatches behind the gradient of the last Finish.
  double gradient_weight() const { return gradient_weight_; }
  // Minibatches of all ranks in the last Finish; partial ones count as their share of batch_size.
  double total_weight() const { return total_weight_; }

  // Time that the last iteration waited for other ranks' gradients or weights, beyond what backward
  // overlapped.
  double wait_s() const { return wait_s_; }

 private:
  void MakeReducer(float* buffer, const std::vector<size_t>& sizes, collective::Memory memory);
  void SumControls(Deadline deadline);

  collective::Group& group_;
  const double timeout_s_;
  const int every_;
  const bool on_device_;
  std::function<std::vector<caffe::Tensor>()> averaged_;
  // Since the last average: updates, minibatches of this rank and of all ranks, and those of all in
  // the first update.
  int updates_ = 0;
  double own_since_ = 0, all_since_ = 0, first_ = 0;
  std::function<void()> on_stop_, on_snapshot_, on_finish_;
  std::atomic<bool> stop_requested_{false}, snapshot_requested_{false};
  double total_weight_ = 0, gradient_weight_ = 0, wait_s_ = 0;
  float invalid_rows_ = 0;
  int64_t total_invalid_rows_ = 0;
  std::vector<float> own_controls_;  // used where no gradients are sent with them
  std::vector<size_t> gradients_;    // padded floats of each parameter on a device
  caffe::Tensor device_diff_;
  float* controls_ = nullptr;  // the first floats of the buffer, before the gradients
  std::unique_ptr<collective::BucketReducer> reducer_;
};

}  // namespace hearth::trainer
