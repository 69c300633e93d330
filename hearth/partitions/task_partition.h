// A partition that a feed task sends. If the driver keeps attempts apart, it must first allow this
// one to send rows; rows that an earlier attempt gave are only compared.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "hearth/partitions/partition.h"
#include "hearth/partitions/task_link.h"

namespace hearth::partitions {

// The program's thread reads; any thread may do the rest.
class TaskPartition : public Partition {
 public:
  using Json = nlohmann::json;

  // `announced` is the task's message; `report` tells the driver. Throws kInvalidArgument for a
  // message without a field that it needs.
  TaskPartition(std::shared_ptr<TaskLink> link, const Json& announced, Tell report);

  bool keep() const override { return keep_; }
  bool inference() const override { return inference_; }
  bool fenced() const { return fenced_; }

  // Asks the driver for permission to send the rows.
  void Ask();
  // The driver's answers. The rows may come, after those that an earlier attempt gave;
  void Begin(const Json& answer);
  // another attempt is sending them and makes progress;
  void Wait();
  // another attempt has sent them: `end` says what became of them.
  void Conclude(const std::string& end);

  // The feed task has written its last row.
  void SetTotal(int64_t entries);

  std::optional<Batch> Read() override;
  void Release() override { link_->rows.Release(); }
  void NoteGiven() override;
  void Hold(int64_t count) override;
  void Settle(int64_t count) override;
  void WriteResults(const batch::PiecesImage& rows) override;
  void AwaitEnd(Deadline deadline) override;
  void Refuse(const std::string& reason) override;
  void Fail(const std::string& reason) override;
  void Drop() override;
  void Lose() override;

 private:
  // How far rows were given to programs, in whole batches.
  struct Given {
    int64_t batches = 0;
    uint64_t hash = 0;  // of those batches
    bool operator==(const Given&) const = default;
  };

  std::optional<std::span<const std::byte>> NextImage();
  bool PassOver(const batch::BatchView& batch);
  [[noreturn]] void RefuseOtherRows();
  void EndIfComplete();
  void End(const Json& message, const std::string& state);
  void GiveBack(const std::string& state);
  void TellDriver(const std::string& event, Json more);

  const std::shared_ptr<TaskLink> link_;
  const Tell report_;
  const bool keep_, inference_, fenced_;
  const RowFormat format_;

  std::mutex mutex_;  // guards all below; never held while a Tell is called
  std::condition_variable total_came_;
  int64_t entries_ = 0;  // rows of batches, taken from the ring
  std::optional<int64_t> total_;
  int64_t open_ = 0;  // batches that are not used up, and rows whose results are owed
  bool ended_ = false;
  bool flushing_ = false;  // it ended, once the task has read the last results
  bool granted_ = false;
  Given before_;  // by an earlier attempt
  bool only_compare_ = false;
  Given read_;
  Given given_;
  std::chrono::steady_clock::time_point told_;
};

}  // namespace hearth::partitions
