// Interface of all sources of minibatches.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hearth/batch/batch_view.h"

namespace hearth::dataset {

// Rows of one minibatch, by reference into batches that `keep_alive` keeps mapped.
struct Minibatch {
  // A row: its batch, and its index in that batch.
  struct Row {
    const batch::BatchView* batch;
    int64_t index;
  };
  std::vector<Row> rows;
  std::vector<std::shared_ptr<const void>> keep_alive;

  int64_t size() const { return static_cast<int64_t>(rows.size()); }
  void Clear() {
    rows.clear();
    keep_alive.clear();
  }
};

// A source of minibatches that delivers every row once per epoch. Used by one consumer thread. Next
// and NextEpoch may wait for the feeder, at most the implementation's `timeout_s` for each of its
// batches. They throw kDeadlineExceeded after `timeout_s`, the feeder's error, kUnavailable if the
// feeder died, and kAborted once stopped.
class MinibatchSource {
 public:
  virtual ~MinibatchSource() = default;

  // Replaces `out` with the next `max_rows` rows of this epoch, or with fewer at its end. Returns
  // out->size(). The rows stay valid while `out` (or a copy of its keep_alive) lives.
  virtual int64_t Next(int64_t max_rows, Minibatch* out) = 0;

  // Starts the next epoch from its first row; skips rows of this epoch that were not read.
  virtual void NextEpoch() = 0;

  virtual int64_t epoch() const = 0;
};

}  // namespace hearth::dataset
