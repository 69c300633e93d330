// Sends events about a rank's steps: progress and histograms on rank 0, times on every rank.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>

#include "hearth/caffe/solver/solver.h"
#include "hearth/trainer/job/job.h"
#include "hearth/trainer/step/distributed_sync.h"
#include "hearth/trainer/step/progress.h"
#include "hearth/trainer/step/step_times.h"

namespace hearth::trainer {

// Sends the events of one rank's steps. Used by the solver's thread.
class StepReports {
 public:
  using SendEvent = std::function<void(const nlohmann::json&)>;

  // Starts measuring. All references must outlive the StepReports.
  StepReports(const Job& job, int rank, caffe::Solver& solver, const DistributedSync& sync,
              SendEvent send);

  // `invalid_rows` is the number of invalid rows of all ranks so far.
  void OnIteration(const caffe::IterationReport& report, int64_t invalid_rows);

  // Number of rows of all ranks per update of the weights.
  int64_t effective_batch() const { return effective_batch_; }

 private:
  void SendProgress(const caffe::IterationReport& report, int64_t invalid_rows);
  void SendHistograms(int iteration);

  const Job& job_;
  const bool is_root_;
  caffe::Solver& solver_;
  const DistributedSync& sync_;
  const SendEvent send_;
  const int64_t effective_batch_;
  Progress progress_;
  StepTimes times_;
  float last_loss_ = 0;
};

// Number of rows of all ranks in the last step.
double RowsOfStep(const DistributedSync& sync, const caffe::Net& net);

}  // namespace hearth::trainer
