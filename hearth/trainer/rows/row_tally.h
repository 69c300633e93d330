// Counts the rows of all ranks in this epoch, and ends the run if too many of them are invalid.
#pragma once

#include <cstdint>
#include <string>

#include "hearth/caffe/snapshot/snapshot_seal.h"
#include "hearth/trainer/job/job.h"
#include "hearth/trainer/rows/invalid_rows.h"

namespace hearth::trainer {

// The counts of valid and invalid rows of all ranks. Used by one device's thread. Except for
// Report, all ranks call the same functions with the same numbers.
class RowTally {
 public:
  // `device` is the index of the device in this process; device 0 reports the total to
  // `invalid_rows`. `job` and `invalid_rows` must outlive the tally.
  RowTally(const Job& job, InvalidRows& invalid_rows, int device)
      : job_(job), invalid_rows_(invalid_rows), sets_count_(device == 0) {}

  // Reports an invalid row of this rank. Returns false if the row is being replayed and has already
  // been counted.
  bool Report(const std::string& row_id, const std::string& reason);

  // Called after every step with the numbers of valid and invalid rows of all ranks. A step without
  // rows ends the epoch. Throws if there are too many invalid rows.
  void AddStep(double rows, int64_t invalid);
  // Called after a validation that skipped `invalid` rows.
  void AddValidation(int64_t invalid);
  // Throws if there are too many invalid rows or, at the end of an epoch, if all rows are invalid.
  void CheckLimit(bool at_end_of_epoch) const;

  // Called before and after the feed replays rows to reach a position. EndReplay returns the number
  // of invalid rows among the replayed ones.
  void BeginReplay() { replayed_ = 0; }
  int64_t EndReplay();
  // Continues the counts at a position. `rows` and `bad` are the numbers of rows and invalid rows
  // of all ranks that were replayed to reach it; they are used if the seal is too old to contain
  // the counts.
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
