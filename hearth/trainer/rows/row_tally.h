// Counts the rows of all ranks in this epoch, and ends the run if too many of them are invalid.
#pragma once

#include <cstdint>
#include <string>

#include "hearth/caffe/snapshot/snapshot_seal.h"
#include "hearth/trainer/job/job.h"
#include "hearth/trainer/rows/invalid_rows.h"

namespace hearth::trainer {

// Used by one device's thread; all ranks call the same functions with the same numbers, except
// Report.
class RowTally {
 public:
  // `device`: of this process. The first one reports the total to `invalid_rows`. Both parameters
  // must outlive it.
  RowTally(const Job& job, InvalidRows& invalid_rows, int device)
      : job_(job), invalid_rows_(invalid_rows), sets_count_(device == 0) {}

  // A row of this rank is invalid. Returns false if it is replayed, and so counted already.
  bool Report(const std::string& row_id, const std::string& reason);

  // After every step with the rows and invalid rows of all ranks; a step without rows ends the
  // epoch. Throws if there are too many invalid rows.
  void AddStep(double rows, int64_t invalid);
  // After a validation that skipped `invalid` rows.
  void AddValidation(int64_t invalid);
  // Throws if there are too many invalid rows. At the end of an epoch also if all are.
  void CheckLimit(bool at_end_of_epoch) const;

  // Invalid rows between these calls are replayed while the feed skips to a position; returns their
  // number.
  void BeginReplay() { replayed_ = 0; }
  int64_t EndReplay();
  // Continues the counts at a position. `rows`, `bad`: rows of all ranks that were replayed to
  // reach it in its epoch; they are used where an older seal lacks the counts.
  void ResumeAt(const caffe::TrainingPosition& position, int64_t rows, int64_t bad);

  const caffe::RowCounts& counts() const { return counts_; }

 private:
  void SetCount();

  const Job& job_;
  InvalidRows& invalid_rows_;
  const bool sets_count_;
  caffe::RowCounts counts_;
  int64_t replayed_ = -1;  // -1: not replaying
};

}  // namespace hearth::trainer
