// Brings the solvers of all ranks to the point at which a training starts.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "hearth/caffe/solver/solver.h"
#include "hearth/collective/group.h"
#include "hearth/trainer/job/job.h"
#include "hearth/trainer/rows/row_tally.h"

namespace hearth::trainer {

// Starts one rank and is used by that rank's thread. All ranks call the same functions in the same
// order. Load and MoveTo wait for the other ranks, for at most kStepTimeoutSeconds, and throw as
// Group::Run does.
class TrainStart {
 public:
  // All parameters must outlive the TrainStart.
  TrainStart(const Job& job, collective::Group& group, caffe::Solver& solver)
      : job_(job), group_(group), solver_(solver) {}

  // Loads the weights of the job or of a snapshot on rank 0, because other hosts may not have the
  // files, and copies them and the solver's history to all ranks. Returns the snapshot's position,
  // if there is one. On rank 0, also restores the validations before the snapshot, unless the
  // snapshot belongs to another run.
  std::optional<caffe::TrainingPosition> Load(nlohmann::json* validations);

  // Returns false, with a warning, if a position refers to rows of another batch size.
  bool IsOfBatchSize(const caffe::TrainingPosition& position) const;

  // Moves iteration, feed and counts to a position.
  void MoveTo(const caffe::TrainingPosition& position, RowTally* tally);

 private:
  std::optional<caffe::TrainingPosition> LoadFiles();
  void TakeNotes(const caffe::TrainingPosition& loaded, nlohmann::json* validations) const;
  void Broadcast(std::string* text);

  const Job& job_;
  collective::Group& group_;
  caffe::Solver& solver_;
};

}  // namespace hearth::trainer
