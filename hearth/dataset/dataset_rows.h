// Rows of all partitions that a rank owns, as they arrive in partition files. A row's index counts
// the rows of these partitions in ascending order of partitions.
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
#include "hearth/dataset/selected_rows.h"
#include "hearth/dataset/wake_up.h"
#include "hearth/formats/mapped_file.h"

namespace hearth::dataset {

// Progress of one attempt to write a partition, as reported by its writer.
struct Announcement {
  int64_t partition = 0;
  int64_t attempt = 0;
  Fd file = Fd();  // set in the attempt's first announcement
  Committed committed = {};
  bool complete = false;  // no more rows follow
  uint64_t hash = 0;      // hash of all rows, if complete (row_hash.h)
};

// The rows of one rank. Thread-safe; several readers share it. A wait throws kDeadlineExceeded
// after `timeout_s`; it throws at once the error of Fail(), of a damaged file or of a signal
// handler (OnSignal).
class DatasetRows {
 public:
  // Throws kInvalidArgument if a partition is repeated or negative, or if `timeout_s` is negative
  // or above a century.
  DatasetRows(std::vector<int64_t> owned, double timeout_s);

  // Adds the rows that a writer has announced. Announcements of a lost attempt are ignored. Of
  // several attempts, the first complete one is read. Throws kInvalidArgument for a partition that
  // is not owned or a first announcement without a file. Throws kDataLoss for a damaged file, for
  // columns that differ from those of other partitions, and for a repeated partition whose rows
  // differ from rows that were already read; kDataLoss also ends all waits.
  void ApplyAnnouncement(Announcement announcement);
  // Reports that this attempt ended early. Another attempt is expected.
  void AbandonAttempt(int64_t partition, int64_t attempt);
  // Sets the row counts of all partitions of the dataset. Throws kInvalidArgument if a partition of
  // this rank has no count, kDataLoss if an owned partition has another count.
  void SetTotals(std::vector<int64_t> rows);
  // Ends all current and later waits with kAborted and `reason`; ignores later reasons.
  void Fail(const std::string& reason);

  // Returns the total number of the rank's rows; waits until its partitions are complete or
  // SetTotals() was called.
  int64_t WaitRows();
  // Waits for SetTotals() and returns its counts. Throws kInvalidArgument for the same values of
  // `timeout_s` as the constructor.
  std::vector<int64_t> WaitTotals(double timeout_s);
  // Returns a batch that shows the columns, valid as long as this object; null if no partition has
  // rows.
  const batch::BatchView* WaitSchema();
  // Waits until all owned partitions are complete; returns their hashes, in ascending order of
  // partitions.
  std::vector<uint64_t> WaitHashes();
  // Waits until all rows before index `end` (or all rows of the rank) have arrived; returns how
  // many have arrived.
  int64_t WaitIndex(int64_t end);

  // Returns the rows at these indices. Throws kInvalidArgument if one of them has not arrived (see
  // WaitIndex). If a row's attempt was lost after its arrival, waits for another attempt; throws
  // kDataLoss if the new attempt has too few rows.
  std::shared_ptr<const SelectedRows> Select(std::vector<int64_t> indices);

  // A row's partition, and its index in that partition.
  struct RowId {
    int64_t partition, row;
  };
  // Returns the ids of the rows at these indices. Throws kInvalidArgument if one of them has not
  // arrived (see WaitIndex).
  std::vector<RowId> IdsOf(std::span<const int64_t> indices);

 private:
  // One attempt to write a partition, with the rows that have arrived from it.
  struct Attempt {
    std::shared_ptr<PartitionRows> rows;
    bool complete = false;
    uint64_t hash = 0;
  };
  // A partition of this rank: its attempts, and the one whose rows are read.
  struct Slot {
    int64_t partition = 0;
    // Used only with announcing_ held.
    std::map<int64_t, Attempt> attempts;
    std::set<int64_t> lost;
    Attempt current;  // the attempt whose rows are read
    bool current_lost = false;
    int64_t read_rows = 0;  // rows [0, read_rows) may have been read
  };

  // Functions for announcements; announcing_ must be held. They lock mutex_ only to publish their
  // results.
  Slot& SlotOf(int64_t partition);
  void ApplyToSlot(Slot& slot, Announcement announcement);
  void CheckColumns(const Slot& slot, const std::vector<batch::BatchView>& batches) const;
  void CheckTotal(const Slot& slot, const Attempt& attempt) const;
  // Uses `attempt` from now on if it is the current one or may replace it.
  void AdoptIfBetter(Slot& slot, const Attempt& attempt);
  bool MayReplaceCurrent(const Slot& slot, const Attempt& attempt) const;
  void AdoptAnother(Slot& slot);
  // Calls `call`. If it throws kDataLoss, ends all waits with that error and rethrows it.
  template <typename Call>
  void FailWith(Call call);

  // Functions that compute indices; mutex_ must be locked.
  void RecomputeBases();
  static int64_t Available(const Slot& slot);
  size_t SlotAt(int64_t index) const;
  // Returns the largest index, or -1 if there are none. Throws unless all rows have arrived.
  int64_t LastOf(std::span<const int64_t> indices) const;

  // Functions for readers.
  void Wait(std::unique_lock<std::mutex>& lock, Deadline deadline, std::string_view what,
            const std::function<bool()>& ready);
  void WaitForRows(std::unique_lock<std::mutex>& lock, std::span<const int64_t> indices);
  void LimitResidentPages(uint64_t read_bytes);

  const double timeout_s_;
  // Admits one announcement at a time, which reads and hashes files without blocking readers.
  std::mutex announcing_;
  // Guards everything below. Of these fields, only read_rows, error_ and touched_bytes_ are written
  // without holding announcing_; a thread that holds announcing_ may read the others without
  // mutex_.
  mutable std::mutex mutex_;
  WakeUp changed_;
  std::vector<Slot> slots_;  // by partition
  std::vector<int64_t> totals_;
  std::vector<int64_t> bases_;  // index of each partition's first row, if known
  int64_t prefix_ = 0;          // rows that have arrived without a gap
  int64_t arrived_ = 0;         // largest prefix_ so far; a lost attempt lowers only prefix_
  int64_t rows_ = -1;           // total of the rank, -1 until known
  std::shared_ptr<const PartitionRows> first_;                  // owns a batch with the columns
  std::set<std::shared_ptr<const formats::MappedFile>> files_;  // files that contain values
  std::exception_ptr error_;
  uint64_t touched_bytes_ = 0;
};

}  // namespace hearth::dataset
