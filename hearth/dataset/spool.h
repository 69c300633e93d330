// Keeps all rows of one ring: its own thread drains the ring into a spill file as fast as the disk
// takes them, so that a feeder never waits for training and later epochs need no feeder.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/base/thread.h"
#include "hearth/batch/kept_batches.h"
#include "hearth/dataset/minibatch.h"
#include "hearth/dataset/row_stream.h"
#include "hearth/ring/ring_reader.h"

namespace hearth::dataset {

struct SpoolOptions {
  std::string directory = "/tmp";  // of the spill file
  // How long one wait for the feeder's next rows may take, on either side of the spool.
  double timeout_s = 3600;
  // About how many bytes of the file may be mapped pages; see KeptBatches.
  uint64_t resident_bytes = uint64_t{256} << 20;
};

// Any thread may read. Waiting calls throw what stopped the draining: the feeder's own error,
// kUnavailable for its death, kResourceExhausted for a full disk. Destruction closes the ring.
class Spool : public RowStream {
 public:
  Spool(ring::RingEnd ring, const SpoolOptions& options);
  ~Spool() override;

  // The batch at `index` in arrival order; waits for it, null where the rows end before it. Valid
  // as long as the spool.
  const batch::BatchView* WaitBatch(size_t index);

  // Waits until the feeder has sent its last row; returns how many rows there are.
  int64_t WaitComplete(Deadline deadline);
  int64_t WaitComplete() { return WaitComplete(Deadline::After(options_.timeout_s)); }

  // Ends the draining, too.
  void Stop() override;

  // The hash is the rolling one of row_hash.h. Waits for the rows, hashes those that are not yet,
  // and throws as KeptBatches::CheckFiles() does.
  Digest DigestOf(int64_t rows) override;
  Digest DigestUpTo(const Minibatch::Row& row) override;
  // All rows come from the first one on.
  void BeginAt(int64_t) override {}

  // The row at `position` in arrival order, 0 <= position < rows; only after WaitComplete()
  // has returned.
  Minibatch::Row RowAt(int64_t position) const;

  // Announces that so many rows are about to be read; now and then all mapped pages are dropped.
  void CountRead(int64_t rows);
  // As KeptBatches::CheckFiles(), at an epoch's begin and end.
  void CheckFiles() const { batches_.CheckFiles(); }

 private:
  struct Start {
    int64_t first_row;
    const batch::BatchView* batch;
    uint64_t hash = 0;  // of the rows before, once these are hashed
  };

  static constexpr int64_t kStride = 256;

  void Drain();
  void Keep(std::span<const std::byte> image);
  class Asking;
  bool HashWhileIdle();
  void HashTo(size_t batches, bool asked);
  void HashNext(std::unique_lock<std::mutex>& lock);
  Digest DigestIn(size_t batches, int64_t rows);
  void IndexStrides();
  template <typename Ready>
  void Wait(std::unique_lock<std::mutex>& lock, Deadline deadline, Ready ready);

  const SpoolOptions options_;
  ring::RingReader reader_;
  batch::KeptBatches batches_;

  std::mutex mutex_;
  std::condition_variable changed_;
  size_t arrived_ = 0;  // batches that readers may see
  // Immutable once complete: each batch that has rows, and the batch of every kStride-th row.
  std::vector<Start> starts_;
  std::vector<uint32_t> strides_;
  int64_t rows_ = 0;
  size_t hashed_ = 0;   // of the batches in starts_
  uint64_t hash_ = 0;   // of their rows
  uint64_t bytes_ = 0;  // the same, those in other files included
  bool complete_ = false, stopped_ = false;
  bool hashing_ = false;  // a thread hashes a batch
  int asking_ = 0;        // threads that wait for a digest, which go first
  std::exception_ptr error_;

  Thread thread_;  // last: it uses everything above
};

}  // namespace hearth::dataset
