// Rows that are sent anew in each epoch and not kept: for files that are larger than the disks. A
// window of them is shuffled at a time, so memory is bounded and nothing is written.
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
#include "hearth/dataset/minibatch.h"
#include "hearth/dataset/row_stream.h"
#include "hearth/ring/ring_reader.h"

namespace hearth::dataset {

struct StreamedOptions {
  uint64_t seed = 0;
  // A window ends with the batch by which it has so many rows or bytes. Two are in memory at most,
  // and those of which minibatches still have rows.
  int64_t window_rows = 16384;
  uint64_t window_bytes = uint64_t{64} << 20;
  // How long one wait for the feeder's next rows may take.
  double timeout_s = 3600;
  // By which the rows can be told from others, as whoever sends them knows.
  uint64_t hash = 0;
};

// The feeder sends whole epochs, each with a flush mark behind its last row, from the one on that
// it is asked for. The order follows from the rows' own order, the seed and the epoch. One consumer
// thread. Failures are the feeder's own, kUnavailable for its death.
class StreamedSource : public MinibatchSource, public RowStream {
 public:
  // `ask` is called once, by BeginAt(), to have the feeder begin with that epoch.
  StreamedSource(ring::RingEnd ring, const StreamedOptions& options,
                 std::function<void(int64_t)> ask);
  ~StreamedSource() override;

  // No rows in epochs before the first. Waits for BeginAt().
  int64_t Next(int64_t max_rows, Minibatch* out) override;
  void NextEpoch() override { ++epoch_; }
  int64_t epoch() const override { return epoch_; }

  Digest DigestOf(int64_t) override { return {0, options_.hash}; }
  Digest DigestUpTo(const Minibatch::Row&) override { return {0, options_.hash}; }
  void BeginAt(int64_t epoch) override;
  void Stop() override;

 private:
  struct Window {
    int64_t epoch = 0;
    bool is_last = false;  // of its epoch
    std::vector<std::shared_ptr<const batch::BatchView>> batches;
    std::vector<Minibatch::Row> rows;
  };

  void Read(int64_t first_epoch);
  std::shared_ptr<Window> ReadWindow(int64_t epoch, int64_t number);
  bool AwaitRoom();
  void TakeWindow();

  const StreamedOptions options_;
  const std::function<void(int64_t)> ask_;
  ring::RingReader reader_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<int64_t> first_epoch_;
  std::shared_ptr<const Window> ready_;  // read ahead, not yet taken
  std::exception_ptr error_;
  bool stopped_ = false;

  // The consumer's.
  std::shared_ptr<const Window> window_;
  size_t row_ = 0;  // the window's next
  int64_t epoch_ = 0;

  Thread thread_;  // last: it uses everything above
};

}  // namespace hearth::dataset
