// Rows of one partition as a node's program reads them: from a feed task, or once more from disk.
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
class PiecesImage;
}  // namespace hearth::batch

namespace hearth::partitions {

// Takes an event for the driver, or a message for a feed task; called on any thread, never with a
// lock held. Its exceptions reach the caller of the function that called it.
using Tell = std::function<void(const nlohmann::json&)>;

// How the batches of a feed hold its rows.
struct RowFormat {
  bool pickled = false;    // else in columns
  bool batched = false;    // each pickle is a list of rows
  bool from_afar = false;  // they came from another host
};

// One thread reads, others may end it; methods that any thread may call say so.
class Partition {
 public:
  struct Batch {
    std::shared_ptr<const batch::BatchView> view;
    // Where it lies in a ring, until Release(). Else empty: then columns are the program's own,
    // which may write to them.
    std::span<const std::byte> image;
    RowFormat format;
  };

  // `index`: in its job, below 0 if replayed; `claim`: this attempt's number at its node.
  Partition(std::string feed, int index, int64_t claim)
      : feed_(std::move(feed)), index_(index), claim_(claim) {}
  virtual ~Partition() = default;
  Partition(const Partition&) = delete;

  const std::string& feed() const { return feed_; }
  int index() const { return index_; }
  int64_t claim() const { return claim_; }
  // Whether the node keeps the rows for later epochs; whether each row has a result.
  virtual bool keep() const { return false; }
  virtual bool inference() const { return false; }

  // The next batch, which counts as held; none at the partition's end. Throws kUnavailable if the
  // rest will not come.
  virtual std::optional<Batch> Read() = 0;
  // The last batch has been read: the feed task may overwrite it.
  virtual void Release() {}
  // The last batch read ends with a whole row: none continues in the next batch.
  virtual void NoteGiven() {}
  // The results of `count` more rows are owed.
  virtual void Hold(int64_t /*count*/) {}
  // `count` held batches are used up, or owed results are written.
  virtual void Settle(int64_t count) = 0;
  // Sends results back. Throws kUnavailable, kAborted where the feed task is gone.
  virtual void WriteResults(const batch::PiecesImage& /*rows*/) {}

  // Any thread: once all rows read so far are used up, waits to learn whether these were all.
  virtual void AwaitEnd(Deadline /*deadline*/) {}
  // Any thread: no more rows will be read here, for `reason`;
  virtual void Refuse(const std::string& reason) = 0;
  // the cluster failed, so nobody waits for a reader of results either;
  virtual void Fail(const std::string& reason) { Refuse(reason); }
  // the rest of the rows is not wanted;
  virtual void Drop() = 0;
  // the feed task is gone, so another attempt may bring what was not given.
  virtual void Lose() = 0;

  // Rows that the program was given.
  std::atomic<int64_t> taken = 0;

 private:
  const std::string feed_;
  const int index_;
  const int64_t claim_;
};

}  // namespace hearth::partitions
