// Delivers a feed's rows to the program across batches and partitions. Counts each row when it is
// delivered, and settles each batch after its last row.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "hearth/feed/partition.h"
#include "hearth/feed/partition_queue.h"

namespace hearth::feed {

// A reader of one queue, which may have other readers. Used by one thread.
class RowReader {
 public:
  explicit RowReader(std::shared_ptr<PartitionQueue> queue) : queue_(std::move(queue)) {}

  // Waits for the next batch, without a deadline: PartitionQueue's End, Fail and Terminate end the
  // wait. Returns nullopt at the end of each partition and at the end of the feed. The batch is
  // valid until Opened(). Throws kAborted if the cluster failed, kResourceExhausted if rows must be
  // spooled and the disk is full.
  std::optional<Partition::Batch> Next();
  // True once Next() has reached the end of the feed.
  bool ended() const { return ended_; }

  // Reports that `rows` rows end in the batch that Next() returned. `within_row`: the batch ends
  // with an incomplete row, which continues in the next batch.
  void Opened(int64_t rows, bool within_row);
  // Counts `count` of the rows that Opened() reported as delivered.
  void Give(int64_t count);

  // Number of delivered rows with pending results: in all partitions, and in the first of them.
  int64_t pending_results() const;
  int64_t pending_in_first() const { return pending_.empty() ? 0 : pending_.front().rows; }
  // Sends results of the first partition back. Returns false if its feed task is gone; Spark then
  // sends its rows again. Waits as long as the task lives. Throws kAborted if the cluster failed.
  bool WriteResults(const batch::ChunksImage& rows);
  // Counts `count` results of the first partition as sent.
  void Answered(int64_t count);

 private:
  // Rows of a partition whose results have not been sent.
  struct PendingResults {
    std::shared_ptr<Partition> partition;
    int64_t rows;
  };

  std::optional<Partition::Batch> Read();
  void Lost();
  void Forget();

  const std::shared_ptr<PartitionQueue> queue_;
  std::shared_ptr<Partition> partition_;
  int64_t left_ = 0;  // undelivered rows of the last batch
  int64_t held_ = 0;  // held batches that contain such rows
  std::deque<PendingResults> pending_;
  bool ended_ = false;
};

}  // namespace hearth::feed
