// Persists all rows of one ring: a dedicated thread drains the ring into a spill file at disk
// speed, so that the feeder never waits for training and later epochs need no feeder.
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
#include "hearth/batch/spilled_batches.h"
#include "hearth/dataset/spool/minibatch.h"
#include "hearth/dataset/spool/row_stream.h"
#include "hearth/ring/ring_reader.h"

namespace hearth::dataset {

// Options of Spool.
struct SpoolOptions {
  std::string directory = "/tmp";  // folder of the spill file
  // Limit of each wait for the feeder's next rows, by the drain and by readers.
  double timeout_s = 3600;
  // Approximate limit of resident mapped bytes of the file; see SpilledBatches.
  uint64_t resident_bytes = uint64_t{256} << 20;
};

// All rows of one ring. Any thread may read. Waits throw kDeadlineExceeded after options.timeout_s,
// kAborted after Stop(), or the error that stopped the drain: the feeder's error, kUnavailable if
// the feeder died, kResourceExhausted for a full disk. Destruction closes the ring.
class Spool : public RowStream {
 public:
  Spool(ring::RingEnd ring, const SpoolOptions& options);
  ~Spool() override;

  // Returns the batch at `index` in arrival order; waits for it. Null if the rows end before it.
  // Valid as long as the spool.
  const batch::BatchView* WaitBatch(size_t index);

  // Waits until the feeder has sent its last row; returns the number of rows.
  int64_t WaitComplete(Deadline deadline);
  int64_t WaitComplete() { return WaitComplete(Deadline::After(options_.timeout_s)); }

  // Also stops the drain.
  void Stop() override;

  // Digests by the rolling hash of row_hash.h. Both calls wait for the rows and hash those that are
  // not yet hashed; they also throw the errors of SpilledBatches::CheckFiles().
  Digest DigestOf(int64_t rows) override;
  Digest DigestUpTo(const Minibatch::Row& row) override;
  // Has no effect: a spool always receives all rows, from the first one on.
  void BeginAt(int64_t) override {}

  // The row at `position` in arrival order, 0 <= position < rows; may be called only after
  // WaitComplete() has returned.
  Minibatch::Row RowAt(int64_t position) const;

  // Call before reading this many rows: occasionally drops all mapped pages.
  void CountRead(int64_t rows);
  // Calls SpilledBatches::CheckFiles(). Used at the start and the end of an epoch.
  void CheckFiles() const { batches_.CheckFiles(); }

 private:
  // First row of a batch, in arrival order.
  struct Start {
    int64_t first_row;
    const batch::BatchView* batch;
    uint64_t hash = 0;  // hash of all rows before this batch, once computed
  };

  static constexpr int64_t kStride = 256;

  void Drain();
  void Store(std::span<const std::byte> image);
  class DigestRequest;
  bool HashWhileIdle();
  void HashTo(size_t batches, bool for_digest);
  void HashNext(std::unique_lock<std::mutex>& lock);
  Digest DigestIn(size_t batches, int64_t rows);
  void IndexStrides();
  template <typename Ready>
  void Wait(std::unique_lock<std::mutex>& lock, Deadline deadline, Ready ready);

  const SpoolOptions options_;
  ring::RingReader reader_;
  batch::SpilledBatches batches_;

  std::mutex mutex_;
  std::condition_variable changed_;
  size_t arrived_ = 0;  // batches visible to readers
  // Immutable once the spool is complete: the start of each batch that has rows, and the batch of
  // every kStride-th row.
  std::vector<Start> starts_;
  std::vector<uint32_t> strides_;
  int64_t rows_ = 0;
  size_t hashed_ = 0;   // number of hashed batches in starts_
  uint64_t hash_ = 0;   // hash of the hashed rows
  uint64_t bytes_ = 0;  // bytes of the hashed rows, including values in other files
  bool complete_ = false, stopped_ = false;
  bool hashing_ = false;     // a thread is hashing a batch
  int digest_requests_ = 0;  // threads waiting for a digest, which have priority
  std::exception_ptr error_;

  Thread thread_;  // last: it uses everything above
};

}  // namespace hearth::dataset
