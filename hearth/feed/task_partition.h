// A partition that a feed task sends. With fencing, the driver must first allow this attempt to
// send rows, and rows that an earlier attempt delivered are only compared.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "hearth/feed/partition.h"
#include "hearth/feed/task_link.h"

namespace hearth::feed {

// A partition whose rows arrive through a feed task's ring. The program's thread reads; any thread
// may call the other methods.
class TaskPartition : public Partition {
 public:
  using Json = nlohmann::json;

  // `announced` is the task's message; `report` sends events to the driver. Throws kInvalidArgument
  // for a message that lacks a required field.
  TaskPartition(std::shared_ptr<TaskLink> link, const Json& announced, Send report);

  bool spools() const override { return spools_; }
  bool inference() const override { return inference_; }
  bool fenced() const { return fenced_; }

  // Asks the driver for permission to send the rows.
  void RequestClaim();
  // Handles the driver's answer that this attempt may send the rows. The rows that an earlier
  // attempt delivered come first and are only compared.
  void Begin(const Json& answer);
  // Handles the driver's answer that another attempt is sending the rows and makes progress.
  void Wait();
  // Handles the driver's answer that another attempt has ended the partition with the outcome
  // `end`.
  void Conclude(const std::string& end);

  // Called when the feed task has written its last row.
  void SetTotal(int64_t entries);

  std::optional<Batch> Read() override;
  void Release() override { link_->rows.Release(); }
  void NoteDelivered() override;
  void Hold(int64_t count) override;
  void Settle(int64_t count) override;
  void WriteResults(const batch::ChunksImage& rows) override;
  void AwaitEnd(Deadline deadline) override;
  void Refuse(const std::string& reason) override;
  void Fail(const std::string& reason) override;
  void Drop() override;
  void Lose() override;

 private:
  // Progress of delivery, in complete batches.
  struct Delivered {
    int64_t batches = 0;
    uint64_t hash = 0;  // hash of these batches
    bool operator==(const Delivered&) const = default;
  };

  std::optional<std::span<const std::byte>> NextImage();
  bool PassOver(const batch::BatchView& batch);
  [[noreturn]] void RejectOtherRows();
  void EndIfComplete();
  void End(const Json& message, const std::string& state);
  void EndClaim(const std::string& state);
  void ReportToDriver(const std::string& event, Json more);

  const std::shared_ptr<TaskLink> link_;
  const Send report_;
  const bool spools_, inference_, fenced_;
  const RowFormat format_;

  std::mutex mutex_;  // guards everything below; never held while calling a Send
  std::condition_variable total_came_;
  int64_t entries_ = 0;  // entries read from the ring
  std::optional<int64_t> total_;
  int64_t open_ = 0;  // unsettled batches and rows with pending results
  bool ended_ = false;
  bool flushing_ = false;  // ended, but the task may not have read all results
  bool granted_ = false;
  Delivered before_;  // delivered by an earlier attempt
  bool only_compare_ = false;
  Delivered read_;
  Delivered delivered_;
  std::chrono::steady_clock::time_point reported_at_;
};

}  // namespace hearth::feed
