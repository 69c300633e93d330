// Checks that a resumed training reads the same rows as before.
#pragma once

#include <memory>
#include <vector>

#include "hearth/caffe/snapshot/snapshot_seal.h"
#include "hearth/collective/group.h"
#include "hearth/dataset/spool/minibatch.h"
#include "hearth/dataset/spool/row_stream.h"
#include "hearth/trainer/job/job.h"

namespace hearth::trainer {

// Checks the rows of one rank and is used by that rank's thread. All ranks call the same functions
// in the same order; they wait for each other for at most kStepTimeoutSeconds, and throw as
// Group::Run does.
class RowCheck {
 public:
  // `rows` is the stream of this rank's process; null if the net produces its rows itself.
  RowCheck(const Job& job, collective::Group& group, std::shared_ptr<dataset::RowStream> rows)
      : job_(job), group_(group), rows_(std::move(rows)) {}

  // Returns a digest of the rows of each rank; `last` is this rank's last minibatch. In the first
  // epoch, the digest covers the stream up to `last`, or the whole stream if `last` is empty. In
  // later epochs it covers the whole stream, because the order of the rows follows from the seed.
  std::vector<caffe::SealedRows> Gather(int64_t epoch, const dataset::Minibatch& last);

  // Returns true if every rank's stream begins with the rows recorded in the position; waits for
  // these rows. Otherwise the first rank whose rows differ warns, or throws if the job requires it.
  // If the position has no comparable rows, rank 0 warns or throws.
  bool RowsMatch(const caffe::TrainingPosition& position);

 private:
  // Warns that the position's epoch begins again because of `what`, or throws `what` if the job
  // requires it.
  void RestartEpochOrThrow(const caffe::TrainingPosition& position, const std::string& what) const;
  [[nodiscard]] std::string Describe(const caffe::SealedRows& found,
                                     const caffe::SealedRows& sealed) const;

  const Job& job_;
  collective::Group& group_;
  const std::shared_ptr<dataset::RowStream> rows_;
};

}  // namespace hearth::trainer
