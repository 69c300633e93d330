// A feed's rows on their way to the program: across batches and partitions, each row counted when
// it is given, each batch settled when it is used up.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "hearth/partitions/partition.h"
#include "hearth/partitions/partition_queue.h"

namespace hearth::partitions {

// Reads a queue, from which other readers may take partitions, too; one thread.
class RowReader {
 public:
  explicit RowReader(std::shared_ptr<PartitionQueue> queue) : queue_(std::move(queue)) {}

  // Waits for the next batch; none at a partition's end, and at the feed's. It is valid until
  // Opened(). Throws kAborted if the cluster failed, kResourceExhausted if rows are to be kept and
  // the disk is full.
  std::optional<Partition::Batch> Next();
  // Whether Next() has come to the feed's end.
  bool ended() const { return ended_; }

  // `rows` rows end in the batch that Next() gave; `within_row`: one goes on in the next batch.
  void Opened(int64_t rows, bool within_row);
  // The program was given `count` more of these.
  void Give(int64_t count);

  // Rows whose results are owed, in the order in which they were given; all, and those of the first
  // partition.
  int64_t owed() const;
  int64_t owed_first() const { return owing_.empty() ? 0 : owing_.front().rows; }
  // Sends results of the first partition back. Returns whether its feed task is still there; if
  // not, Spark sends its rows again. Throws kAborted where the cluster failed.
  bool WriteResults(const batch::PiecesImage& rows);
  // The results of `count` rows were sent.
  void Answered(int64_t count);

 private:
  struct Owing {
    std::shared_ptr<Partition> partition;
    int64_t rows;
  };

  std::optional<Partition::Batch> Read();
  void Lost();
  void Forget();

  const std::shared_ptr<PartitionQueue> queue_;
  std::shared_ptr<Partition> partition_;
  int64_t left_ = 0;  // rows of the last batch that were not given
  int64_t held_ = 0;  // batches that these rows came from
  std::deque<Owing> owing_;
  bool ended_ = false;
};

}  // namespace hearth::partitions
