#include "hearth/feed/task_partition.h"

#include <utility>

#include "hearth/base/error.h"
#include "hearth/batch/row_hash.h"

namespace hearth::feed {
namespace {

using batch::BatchView;
using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

// Minimum interval between progress messages to a feeder.
constexpr auto kFeederProgress = std::chrono::seconds(1);

// Numbers the attempts in this process, because two attempts of one task may be at the same node.
std::atomic<int64_t> last_claim = 0;

// A batch in a ring, with a reference that keeps the ring alive.
struct InRing {
  std::shared_ptr<TaskLink> link;
  BatchView view;
};

template <typename T>
T Field(const Json& message, const char* name) {
  const auto found = message.find(name);
  Require(found != message.end(), ErrorCode::kInvalidArgument,
          "a feed message has no field '{}': {}", name, message.dump());
  try {
    return found->get<T>();
  } catch (const Json::exception& error) {
    Throw(ErrorCode::kInvalidArgument, "field '{}' of a feed message is invalid: {}", name,
          error.what());
  }
}

}  // namespace

TaskPartition::TaskPartition(std::shared_ptr<TaskLink> link, const Json& announced, Send report)
    : Partition(Field<std::string>(announced, "feed"), Field<int>(announced, "index"),
                ++last_claim),
      link_(std::move(link)),
      report_(std::move(report)),
      spools_(Field<bool>(announced, "keep")),
      inference_(Field<std::string>(announced, "mode") == "inference"),
      fenced_(Field<bool>(announced, "fenced")),
      format_{Field<std::string>(announced, "format") == "pickle",
              Field<bool>(announced, "batched"), link_->remote},
      reported_at_(Clock::now()) {}

void TaskPartition::RequestClaim() { ReportToDriver("claim", Json::object()); }

void TaskPartition::Begin(const Json& answer) {
  {
    const std::lock_guard lock(mutex_);
    // Sets delivered_, too: if this attempt dies before it has passed the earlier rows, the next
    // attempt must start at the same row.
    before_ = delivered_ = {Field<int64_t>(answer, "batches"), Field<uint64_t>(answer, "hash")};
    only_compare_ = Field<bool>(answer, "whole");
    granted_ = true;
  }
  taken = Field<int64_t>(answer, "rows");
  link_->send({{"op", "begin"}});
}

void TaskPartition::Wait() { link_->send({{"op", "progress"}}); }

std::optional<Partition::Batch> TaskPartition::Read() {
  while (const auto image = NextImage()) {
    const auto held = std::make_shared<InRing>(InRing{link_, BatchView(*image)});
    const BatchView& batch = held->view;
    {
      const std::lock_guard lock(mutex_);
      entries_ += batch.rows();
      ++open_;
    }
    if (!fenced_ || !PassOver(batch)) {
      return Batch{std::shared_ptr<const BatchView>(held, &batch), *image, format_};
    }
    Release();
    Settle(1);
  }
  std::unique_lock lock(mutex_);
  const bool fewer = read_.batches < before_.batches;
  lock.unlock();
  // If `fewer`, the task sent fewer rows than an earlier attempt has delivered.
  if (fewer) RejectOtherRows();
  return std::nullopt;
}

// Returns the next batch's image in the ring; nullopt after the last one, even if the task died
// after the last row without reporting the end.
std::optional<std::span<const std::byte>> TaskPartition::NextImage() {
  try {
    const ring::RingEntry entry = link_->rows.Next(Deadline::Never());
    if (entry.kind == ring::EntryKind::kBatch) return entry.image;
  } catch (const Error& error) {
    // A link that another thread has closed is treated like a dead task.
    if (error.code() == ErrorCode::kUnavailable || !link_->closed()) throw;
    throw Error(ErrorCode::kUnavailable, "the rest of a partition will not arrive", error);
  }
  std::unique_lock lock(mutex_);
  const int64_t entries = entries_;
  lock.unlock();
  // Sets the total here, because the ring's end may arrive before the task's message with the
  // total.
  SetTotal(entries);
  return std::nullopt;
}

// Returns true for a batch that an earlier attempt has already delivered.
bool TaskPartition::PassOver(const BatchView& batch) {
  std::unique_lock lock(mutex_);
  const uint64_t before = read_.hash;
  lock.unlock();
  // Computed without the lock, because it reads the whole batch.
  const uint64_t hash = batch::HashBatch(before, batch);  // only this thread writes read_
  lock.lock();
  read_ = {read_.batches + 1, hash};
  const bool behind = read_.batches > before_.batches;
  const bool other = behind ? only_compare_ : read_.batches == before_.batches && read_ != before_;
  lock.unlock();
  if (other) RejectOtherRows();
  return !behind;
}

void TaskPartition::RejectOtherRows() {
  const std::string text = fmt::format(
      "partition {} has other rows, or the same rows in another order, than when Spark computed it "
      "before, so it is unknown which rows follow the {} already delivered: use rows that Spark "
      "computes the same way each time, such as files, a checkpoint() of the RDD or DataFrame, or "
      "sorted partitions",
      index(), taken.load());
  report_({{"event", "feed_error"}, {"feed", feed()}, {"text", text}, {"timeout", false}});
  Refuse(text);
  // The reader sees a lost partition, as after the death of a task. The driver knows the reason and
  // fails the job.
  throw Error(ErrorCode::kUnavailable, text);
}

void TaskPartition::NoteDelivered() {
  const std::lock_guard lock(mutex_);
  if (read_.batches > delivered_.batches) delivered_ = read_;
}

void TaskPartition::Hold(int64_t count) {
  const std::lock_guard lock(mutex_);
  open_ += count;
}

void TaskPartition::Settle(int64_t count) {
  bool report = false;
  {
    const std::lock_guard lock(mutex_);
    open_ -= count;
    const auto now = Clock::now();
    // Sends progress to the feed task. Each message restarts the task's deadline, so slow training
    // does not exceed it.
    report = now - reported_at_ > kFeederProgress;
    if (report) reported_at_ = now;
  }
  if (report) link_->send({{"op", "progress"}});
  EndIfComplete();
}

void TaskPartition::SetTotal(int64_t entries) {
  {
    const std::lock_guard lock(mutex_);
    total_ = entries;
  }
  EndIfComplete();
  total_came_.notify_all();
}

void TaskPartition::AwaitEnd(Deadline deadline) {
  std::unique_lock lock(mutex_);
  total_came_.wait_until(lock, deadline.at(), [this] {
    // Keeps waiting if the total equals entries_: SetTotal() is about to complete the partition.
    return ended_ || open_ != 0 || (total_ && total_ != entries_);
  });
}

void TaskPartition::WriteResults(const batch::ChunksImage& rows) {
  link_->results.WriteChunks(rows, Deadline::Never());
}

void TaskPartition::EndIfComplete() {
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || open_ != 0 || total_ != entries_) return;
    if (read_.batches < before_.batches) return;  // fewer rows than before: Read() rejects them
    ended_ = true;
    flushing_ = inference_;
  }
  if (inference_) {
    try {
      // Called without the lock, because it waits until the task has read the earlier results.
      // Fail() may be called in the meantime and looks at flushing_.
      link_->results.WriteFlush(Deadline::Never());
    } catch (const Error&) {
      return;  // the task is gone and needs no results, or the cluster failed
    }
    const std::lock_guard lock(mutex_);
    if (!std::exchange(flushing_, false)) return;  // Fail() has already notified the task
  }
  // Notifies the driver first: the job may end when the task gets its message, and the driver
  // ignores events of a closed job.
  EndClaim("taken");
  link_->send({{"op", "taken"}});
}

void TaskPartition::Lose() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  EndClaim("broken");
}

void TaskPartition::Conclude(const std::string& end) {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  link_->send({{"op", end}});
}

void TaskPartition::Refuse(const std::string& reason) { End({{"error", reason}}, "broken"); }

void TaskPartition::Fail(const std::string& reason) {
  Refuse(reason);
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(flushing_, false)) return;
  }
  link_->send({{"error", reason}});
  link_->Close();
}

void TaskPartition::Drop() { End({{"op", "terminated"}}, "terminated"); }

void TaskPartition::End(const Json& message, const std::string& state) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = true;
  }
  EndClaim(state);
  link_->send(message);
  link_->Close();
}

// Reports to the driver, once, how this attempt's claim ended.
void TaskPartition::EndClaim(const std::string& state) {
  Delivered delivered;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(granted_, false)) return;
    delivered = state == "taken" ? read_ : delivered_;
  }
  ReportToDriver("claim_end", {{"state", state},
                               {"rows", taken.load()},
                               {"batches", delivered.batches},
                               {"hash", delivered.hash}});
}

void TaskPartition::ReportToDriver(const std::string& event, Json more) {
  more.update({{"event", event}, {"feed", feed()}, {"partition", index()}, {"claim", claim()}});
  report_(more);
}

}  // namespace hearth::feed
