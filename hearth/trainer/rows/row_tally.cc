#include "hearth/trainer/rows/row_tally.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hearth::trainer {

// Rows that are replayed to reach a saved position were counted when they were first read, so only
// their names are collected again for the error message.
bool RowTally::Report(const std::string& row_id, const std::string& reason) {
  if (replayed_ >= 0) {
    invalid_rows_.AddRestoredName(row_id, reason);
    ++replayed_;
    return false;
  }
  invalid_rows_.Report(row_id, reason);
  return true;
}

void RowTally::AddStep(double rows, int64_t invalid) {
  counts_.bad += invalid;
  counts_.all_bad += invalid;
  counts_.rows += std::lround(rows) + invalid;
  SetCount();
  // The epoch ends with a step in which no rank has rows. The counts then start again; the size of
  // the whole epoch is stored for CheckLimit.
  const bool over = rows == 0;
  if (over) counts_.whole_epoch = counts_.rows;
  CheckLimit(over);
  if (over) counts_.rows = counts_.bad = 0;
}

void RowTally::AddValidation(int64_t invalid) {
  counts_.all_bad += invalid;
  SetCount();
}

void RowTally::SetCount() {
  if (sets_count_) invalid_rows_.SetCount(counts_.all_bad);
}

// All epochs have the same rows. A later epoch may happen to begin with most of its invalid rows,
// so the number of invalid rows is compared with the size of the whole epoch.
void RowTally::CheckLimit(bool at_end_of_epoch) const {
  const int64_t rows = std::max(counts_.rows, counts_.whole_epoch);
  invalid_rows_.Check(rows, counts_.bad, at_end_of_epoch);
  if (at_end_of_epoch && rows > 0 && counts_.bad >= rows) invalid_rows_.RejectAllInvalid(rows);
}

int64_t RowTally::EndReplay() { return std::exchange(replayed_, -1); }

void RowTally::ResumeAt(const caffe::TrainingPosition& position, int64_t rows, int64_t bad) {
  counts_ = position.counts.value_or(caffe::RowCounts{rows, bad, 0, bad});
  const bool at_position = position.ranks == job_.collective_world() && position.fetches > 0;
  if (!at_position) {  // the epoch begins again, including its invalid rows
    counts_.all_bad -= std::min(counts_.all_bad, counts_.bad);
    counts_.rows = counts_.bad = 0;
  }
  // Invalid rows of another run do not count.
  if (job_.run.empty() || position.run != job_.run) counts_.all_bad = 0;
  invalid_rows_.SetCount(counts_.all_bad);
}

}  // namespace hearth::trainer
