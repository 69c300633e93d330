// Computes the gradient of an iteration, over iter_size passes and all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hearth/caffe/net/net.h"
#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/solver/row_cursor.h"
#include "hearth/caffe/solver/solver_options.h"

namespace hearth::caffe {

// Properties of the net's diffs after the passes of an iteration.
struct StepGradient {
  double weight = 0;      // minibatches in the diffs; of all ranks if the diffs are their sum
  double all_weight = 0;  // minibatches of all ranks
  double loss = 0;        // sum of loss * weight over the local passes
  double local_weight = 0;
  int64_t rows = 0;
  double rows_wait_s = 0;
  bool stop = false, snapshot = false;  // requested by any rank
};

// Computes the gradient of each iteration. Used only by the solver's thread.
class GradientStep {
 public:
  // Accumulates `net`'s gradient in the sync's memory, and reports each parameter to the sync as
  // soon as backward has finished it. All arguments must outlive this object.
  GradientStep(const SolverParameter& param, const SolverOptions& options, Net& net,
               RowCursor& feed);
  GradientStep(const GradientStep&) = delete;
  GradientStep& operator=(const GradientStep&) = delete;

  // Runs the passes of iteration `iteration` and waits for the other ranks.
  StepGradient Compute(int iteration);

  float last_loss() const { return last_loss_; }  // of the last forward pass
  // Returns true if forward passes change values that all ranks keep equal, such as BatchNorm's
  // statistics.
  bool averages_statistics() const { return !statistics_.empty(); }

 private:
  void FindStatistics();
  void RunPass(int iteration);
  void CheckLoss(int iteration);
  void Report(size_t index);
  void TakeStatistics();

  const SolverParameter& param_;
  const SolverOptions& options_;
  Net& net_;
  RowCursor& feed_;
  bool reduced_on_device_ = false;  // gradients are reduced by the sync on the device
  std::vector<size_t> statistics_;  // parameters that the ranks average, such as BatchNorm's
  StepGradient gradient_;           // of the current iteration
  bool in_last_pass_ = false;       // this pass makes gradients final
  bool loss_is_finite_ = true;
  float last_loss_ = 0;
};

}  // namespace hearth::caffe
