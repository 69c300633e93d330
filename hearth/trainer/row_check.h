// Checks that a resumed training reads the same rows as before.
#pragma once

#include <memory>
#include <vector>

#include "hearth/caffe/snapshot/snapshot_seal.h"
#include "hearth/collective/group.h"
#include "hearth/dataset/minibatch.h"
#include "hearth/dataset/row_stream.h"
#include "hearth/trainer/job.h"

namespace hearth::trainer {

// One rank's part, its thread's own. All ranks call the same functions in the same order.
class RowCheck {
 public:
  // `rows`: the stream of this rank's process; null where a net makes its rows itself.
  RowCheck(const Job& job, collective::Group& group, std::shared_ptr<dataset::RowStream> rows)
      : job_(job), group_(group), rows_(std::move(rows)) {}

  // What each rank has read; `last` is this one's last minibatch. In the first epoch, its stream up
  // to there, or all of it if `last` is empty; in later epochs all of it, since their order follows
  // from the seed.
  std::vector<caffe::SealedRows> Gather(int64_t epoch, const dataset::Minibatch& last);

  // Whether every rank's stream begins with the rows that the position names; waits for them. If
  // not, the first rank with other rows warns, or fails if the job says so. Rank 0 does the same if
  // the seal has nothing to compare with.
  bool Confirm(const caffe::TrainingPosition& position);

 private:
  // Warns why a position's epoch begins again, or throws that if the job says so.
  void Refuse(const caffe::TrainingPosition& position, const std::string& what) const;
  [[nodiscard]] std::string Describe(const caffe::SealedRows& found,
                                     const caffe::SealedRows& sealed) const;

  const Job& job_;
  collective::Group& group_;
  const std::shared_ptr<dataset::RowStream> rows_;
};

}  // namespace hearth::trainer
