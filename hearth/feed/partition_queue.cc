#include "hearth/feed/partition_queue.h"

#include <algorithm>
#include <utility>

#include "hearth/base/error.h"

namespace hearth::feed {
namespace {

// Seconds to wait for an end-of-feed message. Short, because all rows have been read, and the
// message comes from this host or network.
constexpr double kEndMessageWaitS = 1;

}  // namespace

std::shared_ptr<TaskPartition> PartitionQueue::Announce(std::shared_ptr<TaskLink> link,
                                                        const Json& announced) {
  auto partition = std::make_shared<TaskPartition>(std::move(link), announced, report_);
  if (!partition->fenced()) {
    Put(partition);
  } else if (Admit(*partition, [&] { claiming_[partition->claim()] = partition; })) {
    // Registered before the request is sent, because the answer may arrive before RequestClaim()
    // returns.
    partition->RequestClaim();
  }
  return partition;
}

void PartitionQueue::Put(const std::shared_ptr<Partition>& partition) {
  if (Admit(*partition, [&] { waiting_.push_back(partition); })) changed_.notify_all();
}

// Calls `add` for a partition, or refuses it if no more rows are needed; returns whether it was
// added. Decides and adds under one lock, so that either Fail() or Terminate() finds the partition
// in the queue, or this call sees that they were called. Notifies the partition after unlocking,
// because that sends a message.
template <typename Add>
bool PartitionQueue::Admit(Partition& partition, Add add) {
  std::unique_lock lock(mutex_);
  const bool terminated = terminated_;
  const std::string failure =
      failure_.empty() && ended_ ? "the feed has been ended by shutdown()" : failure_;
  const bool wanted = !terminated && failure.empty();
  if (wanted) add();
  lock.unlock();
  if (terminated) {
    partition.Drop();
  } else if (!wanted) {
    partition.Refuse(failure);
  }
  return wanted;
}

bool PartitionQueue::Answer(const Json& message) {
  const std::string answer = message.at("answer");
  std::shared_ptr<TaskPartition> partition;
  {
    const std::lock_guard lock(mutex_);
    const auto found = claiming_.find(message.at("claim").get<int64_t>());
    if (found == claiming_.end()) return false;
    partition = found->second;
    if (answer != "wait") claiming_.erase(found);
  }
  if (answer == "wait") {
    partition->Wait();
  } else if (answer == "begin") {
    partition->Begin(message);
    Put(partition);
  } else if (answer == "taken" || answer == "terminated") {
    partition->Conclude(answer);
  } else {
    partition->Refuse("the Spark job that feeds these rows has ended");
  }
  return true;
}

void PartitionQueue::Lose(const std::shared_ptr<TaskPartition>& partition) {
  {
    const std::lock_guard lock(mutex_);
    const bool was_claiming = claiming_.erase(partition->claim()) > 0;
    const auto found = std::find(waiting_.begin(), waiting_.end(), partition);
    if (found != waiting_.end()) {
      waiting_.erase(found);
    } else if (!was_claiming) {
      // A reader is reading the partition and gets the error from the ring.
      return;
    }
  }
  partition->Lose();
}

void PartitionQueue::AddReplay(const std::string& feed, const std::string& spooled, int64_t times) {
  std::shared_ptr<SpooledRows> rows;
  {
    const std::lock_guard lock(mutex_);
    // Removes the rows from the map, so that the replay is their only owner and deletes their file
    // at its end.
    if (auto found = spooled_.extract(spooled)) rows = std::move(found.mapped());
  }
  Put(std::make_shared<Replay>(feed, std::move(rows), times, report_));
}

std::shared_ptr<Partition> PartitionQueue::Next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !waiting_.empty() || ended_ || !failure_.empty(); });
  Require(failure_.empty(), ErrorCode::kAborted, "{}", failure_);
  if (waiting_.empty()) return nullptr;
  auto next = std::move(waiting_.front());
  waiting_.pop_front();
  reading_.push_back(next);
  if (next->inference()) {
    std::erase_if(awaiting_results_, [](const auto& partition) { return partition.expired(); });
    awaiting_results_.push_back(next);
  }
  return next;
}

void PartitionQueue::Done(const std::shared_ptr<Partition>& partition) {
  const std::lock_guard lock(mutex_);
  std::erase(reading_, partition);  // the caller keeps it alive
}

void PartitionQueue::Check() const {
  const std::lock_guard lock(mutex_);
  Require(failure_.empty(), ErrorCode::kAborted, "{}", failure_);
}

std::string PartitionQueue::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void PartitionQueue::End() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
}

void PartitionQueue::Fail(const std::string& reason) {
  // Set first, so that no partition is admitted after TakeAll().
  SetFailure(reason);
  for (const auto& partition : TakeAll()) partition->Fail(reason);
  for (const auto& partition : AwaitingResults()) partition->Fail(reason);
}

void PartitionQueue::SetFailure(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = reason;
}

void PartitionQueue::Terminate() {
  {
    const std::lock_guard lock(mutex_);
    terminated_ = true;
  }
  for (const auto& partition : TakeAll()) partition->Drop();
}

bool PartitionQueue::terminated() const {
  const std::lock_guard lock(mutex_);
  return terminated_;
}

void PartitionQueue::Close(const std::string& reason) {
  std::vector<std::shared_ptr<Partition>> reading;
  {
    const std::lock_guard lock(mutex_);
    if (terminated_) return;
    reading = reading_;
  }
  // End-of-feed messages may still be in flight.
  const Deadline deadline = Deadline::After(kEndMessageWaitS);
  for (const auto& partition : reading) partition->AwaitEnd(deadline);
  SetFailure(reason);
  for (const auto& partition : TakeAll()) partition->Refuse(reason);
}

// Returns all partitions, including those being read.
std::vector<std::shared_ptr<Partition>> PartitionQueue::TakeAll() {
  std::vector<std::shared_ptr<Partition>> all;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [claim, partition] : claiming_) all.push_back(std::move(partition));
    for (auto& partition : waiting_) all.push_back(std::move(partition));
    all.insert(all.end(), reading_.begin(), reading_.end());
    claiming_.clear();
    waiting_.clear();
  }
  changed_.notify_all();
  return all;
}

// Returns partitions that were read and whose results may still be in flight.
std::vector<std::shared_ptr<Partition>> PartitionQueue::AwaitingResults() {
  std::vector<std::shared_ptr<Partition>> all;
  const std::lock_guard lock(mutex_);
  for (const auto& known : awaiting_results_) {
    if (auto partition = known.lock()) all.push_back(std::move(partition));
  }
  return all;
}

SpooledRows& PartitionQueue::Spooled(const std::string& feed) {
  std::unique_lock lock(mutex_);
  if (const auto found = spooled_.find(feed); found != spooled_.end()) return *found->second;
  lock.unlock();
  // Called without the lock, because it creates a file. If two threads get here, emplace keeps the
  // first one's rows.
  auto made = std::make_shared<SpooledRows>(spill_folder_());
  lock.lock();
  return *spooled_.emplace(feed, std::move(made)).first->second;
}

}  // namespace hearth::feed
