// The partitions of one feed of a node, in the order in which they came; then the end.
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

#include "hearth/partitions/partition.h"
#include "hearth/partitions/replay.h"
#include "hearth/partitions/row_count.h"
#include "hearth/partitions/task_partition.h"

namespace hearth::partitions {

// Any thread may use it. Connections of feed tasks announce partitions; each of the program's
// readers (RowReader, a thread) takes one at a time, and its rows out of the ring. A feed whose
// rows are kept has a single reader, as they are written to one file.
class PartitionQueue {
 public:
  using Json = nlohmann::json;
  // Names the folder for a file of kept rows; called when the first one is made.
  using SpillFolder = std::function<std::string()>;

  // `report` tells the driver.
  PartitionQueue(Tell report, SpillFolder spill_folder)
      : report_(std::move(report)), spill_folder_(std::move(spill_folder)), rows_(report_) {}

  // A feed task announces a partition. It is queued (if attempts are kept apart, once the driver
  // has allowed it) or, if no more rows are wanted, refused.
  std::shared_ptr<TaskPartition> Announce(std::shared_ptr<TaskLink> link, const Json& announced);
  // Takes the driver's answer to a claim; returns whether this queue has its partition.
  bool Answer(const Json& message);
  // The partition's feed task is gone: it is taken out, unless it is being read.
  void Lose(const std::shared_ptr<TaskPartition>& partition);
  // Queues the rows kept of feed job `kept` again, `times` over, as rows of `feed`.
  void AddReplay(const std::string& feed, const std::string& kept, int64_t times);

  // Waits for the next partition; null once the feed has ended. Throws kAborted with failure().
  // Each goes to one reader, which calls Done() when it has read it.
  std::shared_ptr<Partition> Next();
  void Done(const std::shared_ptr<Partition>& partition);
  // Throws kAborted where the cluster has failed.
  void Check() const;
  // Why it has failed; empty if it has not.
  std::string failure() const;

  // No more partitions come after those that already wait.
  void End();
  // The cluster has failed: ends all waits, and all partitions, with `reason`.
  void Fail(const std::string& reason);
  // No more rows are wanted: those on their way, and all to come, are skipped.
  void Terminate();
  bool terminated() const;
  // The readers are gone: rows that are left are an error, unless they had terminated.
  void Close(const std::string& reason);

  RowCount& rows() { return rows_; }
  // Where the rows of a feed job are kept for its later epochs.
  KeptRows& Kept(const std::string& feed);

 private:
  void Put(const std::shared_ptr<Partition>& partition);
  template <typename Add>
  bool Admit(Partition& partition, Add add);
  void SetFailure(const std::string& reason);
  std::vector<std::shared_ptr<Partition>> TakeAll();
  std::vector<std::shared_ptr<Partition>> Answering();

  const Tell report_;
  const SpillFolder spill_folder_;
  RowCount rows_;

  // Guards all below; never held while a Tell is called.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, std::shared_ptr<TaskPartition>> asking_;  // by claim: not allowed yet
  std::deque<std::shared_ptr<Partition>> waiting_;
  std::vector<std::shared_ptr<Partition>> reading_;
  std::vector<std::weak_ptr<Partition>> answering_;  // they were read, and may still owe results
  bool ended_ = false, terminated_ = false;
  std::string failure_;
  std::map<std::string, std::shared_ptr<KeptRows>> kept_;  // by feed job
};

}  // namespace hearth::partitions
