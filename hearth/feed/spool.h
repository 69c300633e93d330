// All rows of one ring, kept: a thread of its own drains the ring into a spill file as fast as the
// disk takes them, so that a feeder never waits for training and later epochs need no feeder.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/base/thread.h"
#include "hearth/feed/minibatch.h"
#include "hearth/feed/ring_reader.h"
#include "hearth/feed/spill_file.h"

namespace hearth::feed {

struct SpoolOptions {
  std::string directory = "/tmp";  // of the spill file
  // How long one wait for the feeder's next rows may take, on either side of the spool.
  double timeout_s = 3600;
};

// Any thread may read. Waiting calls throw what stopped the draining: the feeder's own error,
// kUnavailable for its death, kResourceExhausted for a full disk. Destruction closes the ring.
class Spool {
 public:
  Spool(RingEnd ring, const SpoolOptions& options);
  ~Spool();

  // The batch at `index` in arrival order; waits for it, null where the rows end before it. Valid
  // as long as the spool.
  const BatchView* WaitBatch(size_t index);

  // Waits until the feeder has sent its last row; returns how many rows there are.
  int64_t WaitComplete(Deadline deadline);
  int64_t WaitComplete() { return WaitComplete(Deadline::After(options_.timeout_s)); }

  // The row at `position` in arrival order, 0 <= position < rows; only after WaitComplete()
  // has returned.
  Minibatch::Row RowAt(int64_t position) const;

 private:
  struct Start {
    int64_t first_row;
    const BatchView* batch;
  };

  void Drain();
  void Keep(std::span<const std::byte> image);
  template <typename Ready>
  void Wait(std::unique_lock<std::mutex>& lock, Deadline deadline, Ready ready);

  const SpoolOptions options_;
  RingReader reader_;
  SpillFile file_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<BatchView> batches_;  // addresses stay
  std::vector<Start> starts_;      // of each batch that has rows; immutable once complete
  int64_t rows_ = 0;
  bool complete_ = false;
  std::exception_ptr error_;

  Thread thread_;  // last: it uses everything above
};

}  // namespace hearth::feed
