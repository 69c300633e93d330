// Rows that are sent again in each epoch instead of being spooled, for files that are larger than
// the disks. Shuffles one window of rows at a time, so memory is bounded and nothing is written.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "hearth/base/thread.h"
#include "hearth/dataset/spool/minibatch.h"
#include "hearth/dataset/spool/row_stream.h"
#include "hearth/ring/ring_reader.h"

namespace hearth::dataset {

// Options of StreamedSource.
struct StreamedOptions {
  uint64_t seed = 0;
  // A window ends with the batch that reaches this many rows or bytes. At most two windows are in
  // memory, not counting those that minibatches still reference.
  int64_t window_rows = 16384;
  uint64_t window_bytes = uint64_t{64} << 20;
  // Limit of each wait for the feeder's next rows.
  double timeout_s = 3600;
  // Hash that identifies the stream's rows, supplied by the sender.
  uint64_t hash = 0;
};

// A stream of rows from a feeder. The feeder starts with the requested epoch and sends whole
// epochs, each followed by a flush mark. The order of the rows depends on the order in which they
// arrive, the seed and the epoch. Used by one consumer thread. Throws the feeder's error, or
// kUnavailable if the feeder died.
class StreamedSource : public MinibatchSource, public RowStream {
 public:
  // `ask(epoch)` tells the feeder with which epoch to start. Only the first call of BeginAt() calls
  // it.
  StreamedSource(ring::RingEnd ring, const StreamedOptions& options,
                 std::function<void(int64_t)> ask);
  ~StreamedSource() override;

  // Waits for BeginAt() or Stop(), without a deadline. Returns no rows in epochs before the one
  // that was passed to BeginAt().
  int64_t Next(int64_t max_rows, Minibatch* out) override;
  void NextEpoch() override { ++epoch_; }
  int64_t epoch() const override { return epoch_; }

  Digest DigestOf(int64_t) override { return {0, options_.hash}; }
  Digest DigestUpTo(const Minibatch::Row&) override { return {0, options_.hash}; }
  void BeginAt(int64_t epoch) override;
  void Stop() override;

 private:
  // Rows that are shuffled together, and their batches.
  struct Window {
    int64_t epoch = 0;
    bool is_last = false;  // last window of its epoch
    std::vector<std::shared_ptr<const batch::BatchView>> batches;
    std::vector<Minibatch::Row> rows;
  };

  void Read(int64_t first_epoch);
  std::shared_ptr<Window> ReadWindow(int64_t epoch, int64_t number);
  bool AwaitSpace();
  void TakeWindow();

  const StreamedOptions options_;
  const std::function<void(int64_t)> ask_;
  ring::RingReader reader_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<int64_t> first_epoch_;
  std::shared_ptr<const Window> ready_;  // read ahead, not yet consumed
  std::exception_ptr error_;
  bool stopped_ = false;

  // Used by the consumer only.
  std::shared_ptr<const Window> window_;
  size_t row_ = 0;  // next row of the window
  int64_t epoch_ = 0;

  Thread thread_;  // last: it uses everything above
};

}  // namespace hearth::dataset
