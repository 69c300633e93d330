// The rows of all partitions that a rank owns, as they arrive in partition files, by their index: a
// row's number in these partitions in ascending order.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/base/fd.h"
#include "hearth/dataset/partition_rows.h"
#include "hearth/dataset/taken_rows.h"
#include "hearth/dataset/wake_up.h"
#include "hearth/formats/mapped_file.h"

namespace hearth::dataset {

// What the writer of a partition has reported.
struct Announcement {
  int64_t partition = 0;
  int64_t attempt = 0;
  Fd file = Fd();  // with the attempt's first announcement
  Committed committed = {};
  bool complete = false;  // no more rows come
  uint64_t hash = 0;      // of all rows, where it is complete (row_hash.h)
};

// Any thread; several readers share it. Waits throw kDeadlineExceeded `timeout_s` after they began,
// at once what Fail() or a damaged file said, and what a signal's handler throws (OnSignal).
class DatasetRows {
 public:
  // Throws kInvalidArgument where a partition is named twice or below 0, or `timeout_s` is negative
  // or above a century.
  DatasetRows(std::vector<int64_t> owned, double timeout_s);

  // Throws kInvalidArgument for a partition that is not owned or a first announcement without a
  // file, and kDataLoss for a damaged file, other columns than in other partitions, or a repeated
  // partition whose rows differ from those that were taken; kDataLoss ends all waits, too.
  // Announcements of an attempt that was lost are ignored. Of two attempts the first that is
  // complete is read.
  void Grow(Announcement announcement);
  // The attempt ends without its last rows; another one is to come.
  void Lose(int64_t partition, int64_t attempt);
  // Of all partitions of the dataset. Throws kDataLoss where an owned one has other rows.
  void SetTotals(std::vector<int64_t> rows);
  // Ends all waits, now and later, with kAborted; the first reason stays.
  void Fail(const std::string& reason);

  // All rows of the rank: known once its partitions are complete, or all totals are.
  int64_t WaitRows();
  std::vector<int64_t> WaitTotals(double timeout_s);
  // A batch, which shows the columns and lives as long as this; null where no partition has a row.
  const batch::BatchView* WaitForm();
  // The hash of each owned partition, in ascending order; waits until all are complete.
  std::vector<uint64_t> WaitHashes();
  // Waits until the rows before index `end` are there, or all are; how many are.
  int64_t WaitIndex(int64_t end);

  // Where the rows at these indices lie; they must be there (WaitIndex).
  std::shared_ptr<const TakenRows> Take(std::vector<int64_t> indices);

  struct RowId {
    int64_t partition, row;
  };
  std::vector<RowId> IdsOf(std::span<const int64_t> indices);

 private:
  struct Attempt {
    std::shared_ptr<PartitionRows> rows;
    bool complete = false;
    uint64_t hash = 0;
  };
  struct Slot {
    int64_t partition = 0;
    // Both are changed while announcing_ is held.
    std::map<int64_t, Attempt> attempts;
    std::set<int64_t> lost;
    Attempt shown;  // the attempt whose rows are read
    bool shown_lost = false;
    int64_t taken = 0;  // rows [0, taken) may have been given out
  };

  void GrowSlot(Slot& slot, Announcement announcement);
  void LoseSlot(Slot& slot, int64_t attempt);
  void CheckColumns(const Slot& slot, const std::vector<batch::BatchView>& batches) const;
  void CheckTotal(const Slot& slot, const Attempt& attempt) const;
  int64_t TakenOf(const Slot& slot) const;
  void Consider(Slot& slot, const Attempt& attempt);
  void RequireSameRows(const Slot& slot, const Attempt& attempt, bool same) const;
  void Refresh();
  static int64_t Available(const Slot& slot);
  Slot& SlotOf(int64_t partition);
  size_t SlotAt(int64_t index) const;
  void Wait(std::unique_lock<std::mutex>& lock, Deadline deadline, std::string_view what,
            const std::function<bool()>& ready);
  void CountTouched(uint64_t bytes);
  void CheckFiles() const;
  template <typename Call>
  void FailWith(Call call);

  const double timeout_s_;
  // One announcement at a time: files are read without the other mutex.
  std::mutex announcing_;
  mutable std::mutex mutex_;  // of all below
  WakeUp changed_;
  std::vector<Slot> slots_;  // by partition
  std::vector<int64_t> totals_;
  std::vector<int64_t> bases_;  // index of each partition's first row, as far as known
  int64_t prefix_ = 0;          // rows that are there without a gap
  int64_t rows_ = -1;           // of the rank, once known
  std::shared_ptr<const PartitionRows> first_;                  // keeps the columns
  std::set<std::shared_ptr<const formats::MappedFile>> files_;  // in which values lie
  std::exception_ptr error_;
  uint64_t touched_bytes_ = 0;
};

}  // namespace hearth::dataset
