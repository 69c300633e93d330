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

// The part of one rank, used by its thread. All ranks call the same functions in the same order;
// they wait for each other for at most kStepTimeoutSeconds, and throw as Group::Run.
class RowCheck {
 public:
  // `rows`: the stream of this rank's process; null if a net produces its rows itself.
  RowCheck(const Job& job, collective::Group& group, std::shared_ptr<dataset::RowStream> rows)
      : job_(job), group_(group), rows_(std::move(rows)) {}

  // Digests of the rows that each rank has read; `last` is this rank's last minibatch. In the first
  // epoch, the digest covers the stream up to `last`, or all of it if `last` is empty; in later
  // epochs all of it, since their order follows from the seed.
  std::vector<caffe::SealedRows> Gather(int64_t epoch, const dataset::Minibatch& last);

  // Returns true if every rank's stream begins with the rows of the position; waits for them.
  // Otherwise the first rank with other rows warns, or throws if the job requires it. Rank 0 does
  // the same if the seal has nothing to compare with.
  bool RowsMatch(const caffe::TrainingPosition& position);

 private:
  // Warns why a position's epoch begins again, or throws the reason if the job requires it.
  void RestartEpochOrThrow(const caffe::TrainingPosition& position, const std::string& what) const;
  [[nodiscard]] std::string Describe(const caffe::SealedRows& found,
                                     const caffe::SealedRows& sealed) const;

  const Job& job_;
  collective::Group& group_;
  const std::shared_ptr<dataset::RowStream> rows_;
};

}  // namespace hearth::trainer
