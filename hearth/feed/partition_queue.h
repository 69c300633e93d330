// Queue of a node's partitions for one feed, in order of arrival, until the feed ends.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hearth/feed/partition.h"
#include "hearth/feed/replay.h"
#include "hearth/feed/row_count.h"
#include "hearth/feed/task_partition.h"

namespace hearth::feed {

// Partitions that wait to be read or are being read. Connections of feed tasks announce partitions;
// each reader of the program (RowReader, one thread) takes one partition at a time and reads its
// rows from the ring. A feed with spooled rows has a single reader, because they are written to one
// file. Thread-safe.
class PartitionQueue {
 public:
  using Json = nlohmann::json;
  // Returns the folder for a file of spooled rows; called when the first such file is created.
  using SpillFolder = std::function<std::string()>;

  // `report` sends events to the driver.
  PartitionQueue(Send report, SpillFolder spill_folder)
      : report_(std::move(report)), spill_folder_(std::move(spill_folder)), rows_(report_) {}

  // Handles a feed task's announcement of a partition. Queues the partition (for fenced attempts,
  // once the driver allows it), or refuses it if no more rows are needed.
  std::shared_ptr<TaskPartition> Announce(std::shared_ptr<TaskLink> link, const Json& announced);
  // Applies the driver's answer to a claim; returns whether this queue has the partition.
  bool Answer(const Json& message);
  // Called when a partition's feed task is gone. Removes the partition unless it is being read.
  void Lose(const std::shared_ptr<TaskPartition>& partition);
  // Queues the spooled rows of feed job `spooled`, to be read `times` more times as rows of `feed`.
  void AddReplay(const std::string& feed, const std::string& spooled, int64_t times);

  // Waits for the next partition, without a deadline; null once the feed has ended or Terminate was
  // called. Throws kAborted with failure() once Fail was called.
  // Each partition goes to one reader, which must call Done() after reading it.
  std::shared_ptr<Partition> Next();
  void Done(const std::shared_ptr<Partition>& partition);
  // Checks for a failure: throws kAborted if the cluster has failed.
  void Check() const;
  // Reason of the cluster's failure; empty if it has not failed.
  std::string failure() const;

  // Ends the feed after the partitions already queued.
  void End();
  // Reports a failure of the cluster: ends all waits and all partitions with `reason`.
  void Fail(const std::string& reason);
  // Skips all rows, current and future.
  void Terminate();
  bool terminated() const;
  // Called when the readers are gone. Rejects remaining rows with the error `reason`, unless the
  // feed was terminated.
  void Close(const std::string& reason);

  RowCount& rows() { return rows_; }
  // Spooled rows of a feed job, for its later epochs.
  SpooledRows& Spooled(const std::string& feed);

 private:
  void Put(const std::shared_ptr<Partition>& partition);
  template <typename Add>
  bool Admit(Partition& partition, Add add);
  void SetFailure(const std::string& reason);
  std::vector<std::shared_ptr<Partition>> TakeAll();
  std::vector<std::shared_ptr<Partition>> AwaitingResults();

  const Send report_;
  const SpillFolder spill_folder_;
  RowCount rows_;

  // Guards everything below; never held while calling a Send.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, std::shared_ptr<TaskPartition>>
      claiming_;  // by claim number; these wait for the driver's permission
  std::deque<std::shared_ptr<Partition>> waiting_;
  std::vector<std::shared_ptr<Partition>> reading_;
  std::vector<std::weak_ptr<Partition>> awaiting_results_;  // read, but results may be pending
  bool ended_ = false, terminated_ = false;
  std::string failure_;
  std::map<std::string, std::shared_ptr<SpooledRows>> spooled_;  // by feed job
};

}  // namespace hearth::feed
