#include "hearth/partitions/task_partition.h"

#include <utility>

#include "hearth/base/error.h"
#include "hearth/batch/row_hash.h"

namespace hearth::partitions {
namespace {

using batch::BatchView;
using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

// Feeders hear at least this often that rows are taken.
constexpr auto kFeederProgress = std::chrono::seconds(1);

std::atomic<int64_t> last_claim = 0;

// A batch in a ring, and what keeps the ring.
struct InRing {
  std::shared_ptr<TaskLink> link;
  BatchView view;
};

template <typename T>
T Field(const Json& message, const char* name) {
  const auto found = message.find(name);
  Require(found != message.end(), ErrorCode::kInvalidArgument,
          "a feed's message has no field '{}': {}", name, message.dump());
  try {
    return found->get<T>();
  } catch (const Json::exception& error) {
    Throw(ErrorCode::kInvalidArgument, "field '{}' of a feed's message was not understood: {}",
          name, error.what());
  }
}

}  // namespace

TaskPartition::TaskPartition(std::shared_ptr<TaskLink> link, const Json& announced, Tell report)
    : Partition(Field<std::string>(announced, "feed"), Field<int>(announced, "index"),
                ++last_claim),
      link_(std::move(link)),
      report_(std::move(report)),
      keep_(Field<bool>(announced, "keep")),
      inference_(Field<std::string>(announced, "mode") == "inference"),
      fenced_(Field<bool>(announced, "fenced")),
      format_{Field<std::string>(announced, "format") == "pickle",
              Field<bool>(announced, "batched"), link_->from_afar},
      told_(Clock::now()) {}

void TaskPartition::Ask() { TellDriver("claim", Json::object()); }

void TaskPartition::Begin(const Json& answer) {
  {
    const std::lock_guard lock(mutex_);
    before_ = given_ = {Field<int64_t>(answer, "batches"), Field<uint64_t>(answer, "hash")};
    only_compare_ = Field<bool>(answer, "whole");
    granted_ = true;
  }
  taken = Field<int64_t>(answer, "rows");
  link_->tell({{"op", "begin"}});
}

void TaskPartition::Wait() { link_->tell({{"op", "progress"}}); }

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
  if (fewer) RefuseOtherRows();
  return std::nullopt;
}

// The next batch's image in the ring; none behind the last one, also where the task dies before it
// can say so.
std::optional<std::span<const std::byte>> TaskPartition::NextImage() {
  try {
    const ring::RingEntry entry = link_->rows.Next(Deadline::Never());
    if (entry.kind == ring::EntryKind::kBatch) return entry.image;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUnavailable || !link_->closed()) throw;
    throw Error(ErrorCode::kUnavailable, "the rest of a partition will not come", error);
  }
  std::unique_lock lock(mutex_);
  const int64_t entries = entries_;
  lock.unlock();
  SetTotal(entries);
  return std::nullopt;
}

// Whether the batch was given before, of an earlier attempt.
bool TaskPartition::PassOver(const BatchView& batch) {
  std::unique_lock lock(mutex_);
  const uint64_t before = read_.hash;
  lock.unlock();
  const uint64_t hash = batch::HashBatch(before, batch);  // only this thread changes read_
  lock.lock();
  read_ = {read_.batches + 1, hash};
  const bool behind = read_.batches > before_.batches;
  const bool other = behind ? only_compare_ : read_.batches == before_.batches && read_ != before_;
  lock.unlock();
  if (other) RefuseOtherRows();
  return !behind;
}

void TaskPartition::RefuseOtherRows() {
  const std::string text = fmt::format(
      "partition {} has other rows, or the same rows in another order, than when Spark computed it "
      "before, so it is not known which rows follow the {} that were given: give rows that Spark "
      "computes the same way each time, such as files, a checkpoint() of the RDD or DataFrame, or "
      "sorted "
      "partitions",
      index(), taken.load());
  report_({{"event", "feed_error"}, {"feed", feed()}, {"text", text}, {"timeout", false}});
  Refuse(text);
  throw Error(ErrorCode::kUnavailable, text);
}

void TaskPartition::NoteGiven() {
  const std::lock_guard lock(mutex_);
  if (read_.batches > given_.batches) given_ = read_;
}

void TaskPartition::Hold(int64_t count) {
  const std::lock_guard lock(mutex_);
  open_ += count;
}

void TaskPartition::Settle(int64_t count) {
  bool tell = false;
  {
    const std::lock_guard lock(mutex_);
    open_ -= count;
    const auto now = Clock::now();
    tell = now - told_ > kFeederProgress;
    if (tell) told_ = now;
  }
  if (tell) link_->tell({{"op", "progress"}});
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
    // Of a total that fits, whoever set it is about to make the end.
    return ended_ || open_ != 0 || (total_ && total_ != entries_);
  });
}

void TaskPartition::WriteResults(const batch::PiecesImage& rows) {
  link_->results.WritePieces(rows, Deadline::Never());
}

void TaskPartition::EndIfComplete() {
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || open_ != 0 || total_ != entries_) return;
    if (read_.batches < before_.batches) return;  // fewer rows than before: Read() refuses them
    ended_ = true;
    flushing_ = inference_;
  }
  if (inference_) {
    try {
      link_->results.WriteFlush(Deadline::Never());
    } catch (const Error&) {
      return;  // the task is gone, so nobody waits for the results; or the cluster has failed
    }
    const std::lock_guard lock(mutex_);
    if (!std::exchange(flushing_, false)) return;  // the task knows that the cluster has failed
  }
  GiveBack("taken");
  link_->tell({{"op", "taken"}});
}

void TaskPartition::Lose() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  GiveBack("broken");
}

void TaskPartition::Conclude(const std::string& end) {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  link_->tell({{"op", end}});
}

void TaskPartition::Refuse(const std::string& reason) { End({{"error", reason}}, "broken"); }

void TaskPartition::Fail(const std::string& reason) {
  Refuse(reason);
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(flushing_, false)) return;
  }
  link_->tell({{"error", reason}});
  link_->Close();
}

void TaskPartition::Drop() { End({{"op", "terminated"}}, "terminated"); }

void TaskPartition::End(const Json& message, const std::string& state) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = true;
  }
  GiveBack(state);
  link_->tell(message);
  link_->Close();
}

// Tells the driver, once, how the right to bring the rows was used.
void TaskPartition::GiveBack(const std::string& state) {
  Given given;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(granted_, false)) return;
    given = state == "taken" ? read_ : given_;
  }
  TellDriver(
      "claim_end",
      {{"state", state}, {"rows", taken.load()}, {"batches", given.batches}, {"hash", given.hash}});
}

void TaskPartition::TellDriver(const std::string& event, Json more) {
  more.update({{"event", event}, {"feed", feed()}, {"partition", index()}, {"claim", claim()}});
  report_(more);
}

}  // namespace hearth::partitions
