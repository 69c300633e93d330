// Reads the next minibatch of a data layer on a thread of its own while the net works on the
// present one.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hearth/base/thread.h"
#include "hearth/feed/minibatch.h"

namespace hearth::caffe {

// All calls from one thread. Waits end with the source's own deadline. Not movable.
class Prefetcher {
 public:
  // Writes one row's values into each top. Called from several threads. `seed` is the row's own,
  // and depends on the options' seed, the epoch and the row's place in it only. kDataLoss marks a
  // row as unusable; every other failure ends the stream.
  using ReadRow = std::function<void(const feed::Minibatch::Row& row, uint64_t seed,
                                     const std::vector<float*>& tops)>;
  struct Options {
    int64_t batch_size = 1;
    std::vector<int64_t> row_sizes;  // floats per row, for each top
    int threads = 1;                 // that read rows, the prefetching one included
    uint64_t seed = 0;
  };
  struct BadRow {
    std::string id, reason;
  };
  struct Batch {
    feed::Minibatch rows;  // without the bad ones
    std::vector<std::vector<float>>
        tops;  // rows.size() * row_sizes[i] values, one row after another
    std::vector<BadRow> bad_rows;
  };

  Prefetcher(std::shared_ptr<feed::MinibatchSource> source, Options options, ReadRow read_row);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // The next minibatch, valid until the next call: batch_size rows, fewer at the end of an epoch,
  // and none after it until NextEpoch(). Bad rows are replaced by those that follow.
  const Batch& Next();
  void NextEpoch();

 private:
  enum class State { kFilling, kReady, kOver, kRestart, kFailed, kStop };

  void Run();
  void FillBatch();
  bool TakeRows();
  void ReadRows(int64_t first);
  void DropBadRows(int64_t first, const std::vector<std::string>& reasons);
  void WaitForThread(std::unique_lock<std::mutex>& lock);

  const std::shared_ptr<feed::MinibatchSource> source_;
  const Options options_;
  const ReadRow read_row_;

  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::kFilling;
  std::exception_ptr error_;
  Batch current_;

  // The thread's own while state_ is kFilling.
  Batch next_;
  feed::Minibatch pending_;  // taken from the source, not yet in a batch
  int64_t pending_position_ = 0;
  int64_t rows_taken_ = 0;  // in this epoch

  Thread thread_;
};

}  // namespace hearth::caffe
