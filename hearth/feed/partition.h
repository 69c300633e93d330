// Interface of one partition's rows as a node's program reads them: from a feed task, or replayed
// from disk.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "hearth/base/deadline.h"
#include "hearth/batch/batch_view.h"

namespace hearth::batch {
class ChunksImage;
}  // namespace hearth::batch

namespace hearth::feed {

// A function that sends an event to the driver, or a message to a feed task. Called on any thread,
// never with a lock held. Its callers do not catch its exceptions.
using Send = std::function<void(const nlohmann::json&)>;

// Encoding of rows in the batches of a feed.
struct RowFormat {
  bool pickled = false;  // true: pickles, false: columns
  bool batched = false;  // each pickle is a list of rows
  bool remote = false;   // sent from another host
};

// One attempt's rows of a partition. One thread reads. Any thread may call the methods whose
// comments say "Any thread".
class Partition {
 public:
  // A batch returned by Read().
  struct Batch {
    std::shared_ptr<const batch::BatchView> view;
    // Location in the ring, valid until Release(). If empty, the program owns the columns and may
    // write to them.
    std::span<const std::byte> image;
    RowFormat format;
  };

  // `index`: number in its job, negative if replayed; `claim`: this attempt's number at its node.
  Partition(std::string feed, int index, int64_t claim)
      : feed_(std::move(feed)), index_(index), claim_(claim) {}
  virtual ~Partition() = default;
  Partition(const Partition&) = delete;

  const std::string& feed() const { return feed_; }
  int index() const { return index_; }
  int64_t claim() const { return claim_; }
  // spools(): true if the node spools the rows for later epochs. inference(): true if each row has
  // a result.
  virtual bool spools() const { return false; }
  virtual bool inference() const { return false; }

  // Returns the next batch; nullopt at the partition's end. The batch counts as not yet processed
  // until the reader calls Settle(). Waits without a deadline; Refuse, Fail, Drop and the feed
  // task's end stop the wait. Throws kUnavailable if the remaining rows will not arrive.
  virtual std::optional<Batch> Read() = 0;
  // Releases the last batch read, so that the feed task may overwrite it.
  virtual void Release() {}
  // Reports that the last batch read ends with a complete row.
  virtual void NoteDelivered() {}
  // Adds `count` rows that count as not yet processed until their results are written.
  virtual void Hold(int64_t /*count*/) {}
  // Reports that `count` batches were processed, or the results of `count` rows written.
  virtual void Settle(int64_t count) = 0;
  // Sends results back; waits as long as the feed task lives. Throws kUnavailable or kAborted once
  // the task is gone.
  virtual void WriteResults(const batch::ChunksImage& /*rows*/) {}

  // Any thread. If all rows read so far are settled, waits until it is known whether more rows
  // follow, or until the deadline. Does not throw.
  virtual void AwaitEnd(Deadline /*deadline*/) {}
  // Any thread. Rejects the remaining rows with the error `reason`.
  virtual void Refuse(const std::string& reason) = 0;
  // Any thread. The cluster has failed: calls Refuse(), and also ends a wait for the feed task to
  // read its results.
  virtual void Fail(const std::string& reason) { Refuse(reason); }
  // Any thread. Ends the partition, because the remaining rows are not needed.
  virtual void Drop() = 0;
  // Any thread. The feed task is gone: allows another attempt to send the undelivered rows.
  virtual void Lose() = 0;

  // Rows delivered to the program.
  std::atomic<int64_t> taken = 0;

 private:
  const std::string feed_;
  const int index_;
  const int64_t claim_;
};

}  // namespace hearth::feed
