#include "hearth/dataset/dataset_rows.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/dataset/same_columns.h"

namespace hearth::dataset {
namespace {

// Approximate limit of resident mapped bytes: resource managers such as YARN count mapped pages as
// process memory although the kernel can reclaim them.
constexpr uint64_t kResidentBytes = uint64_t{64} << 20;

constexpr double kCentury = 100 * 365.25 * 86400;

double CheckedTimeout(double seconds) {
  Require(seconds >= 0 && seconds <= kCentury, ErrorCode::kInvalidArgument,
          "the timeout for rows is {} s: it must be between 0 and {} s", seconds, kCentury);
  return seconds;
}

}  // namespace

DatasetRows::DatasetRows(std::vector<int64_t> owned, double timeout_s)
    : timeout_s_(CheckedTimeout(timeout_s)) {
  std::sort(owned.begin(), owned.end());
  const bool distinct = std::adjacent_find(owned.begin(), owned.end()) == owned.end();
  Require(distinct && (owned.empty() || owned.front() >= 0), ErrorCode::kInvalidArgument,
          "the partitions of a rank must be distinct and not negative, got {}",
          fmt::join(owned, ", "));
  for (const int64_t partition : owned) slots_.emplace_back().partition = partition;
  RecomputeBases();
}

DatasetRows::Slot& DatasetRows::SlotOf(int64_t partition) {
  const auto at =
      std::lower_bound(slots_.begin(), slots_.end(), partition,
                       [](const Slot& slot, int64_t wanted) { return slot.partition < wanted; });
  Require(at != slots_.end() && at->partition == partition, ErrorCode::kInvalidArgument,
          "partition {} was announced to a rank that does not own it", partition);
  return *at;
}

template <typename Call>
void DatasetRows::FailWith(Call call) {
  try {
    call();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kDataLoss) {
      const std::lock_guard lock(mutex_);
      if (error_ == nullptr) error_ = std::current_exception();
      changed_.NotifyAll();
    }
    throw;
  }
}

void DatasetRows::ApplyAnnouncement(Announcement announcement) {
  const std::lock_guard announcing(announcing_);
  Slot& slot = SlotOf(announcement.partition);
  if (slot.current.complete || slot.lost.contains(announcement.attempt)) return;
  FailWith([&] { ApplyToSlot(slot, std::move(announcement)); });
}

void DatasetRows::ApplyToSlot(Slot& slot, Announcement announcement) {
  Require(announcement.file.valid() || slot.attempts.contains(announcement.attempt),
          ErrorCode::kInvalidArgument, "attempt {} of partition {} was announced without its file",
          announcement.attempt, announcement.partition);
  if (!slot.attempts.contains(announcement.attempt)) {
    auto rows = std::make_shared<PartitionRows>(slot.partition, announcement.attempt,
                                                std::move(announcement.file));
    slot.attempts[announcement.attempt].rows = std::move(rows);
  }
  Attempt& attempt = slot.attempts.at(announcement.attempt);
  // Reads the file without locking mutex_, so that readers are not blocked, and publishes the rows
  // only after checking them.
  std::vector<batch::BatchView> batches = attempt.rows->ReadTo(announcement.committed);
  CheckColumns(slot, batches);
  {
    const std::lock_guard lock(mutex_);
    for (const batch::BatchView& batch : batches) {
      files_.insert(batch.files().begin(), batch.files().end());
    }
    if (first_ == nullptr && !batches.empty()) first_ = attempt.rows;
    attempt.rows->Add(std::move(batches));
    attempt.complete = attempt.complete || announcement.complete;
    attempt.hash = announcement.hash;
    // The attempt is adopted before it is complete, because training starts with the first rows.
    if (slot.current.rows == nullptr) slot.current = attempt;
  }
  AdoptIfBetter(slot, attempt);
}

void DatasetRows::CheckColumns(const Slot& slot,
                               const std::vector<batch::BatchView>& batches) const {
  const batch::BatchView* before = first_ == nullptr ? nullptr : &first_->batches().front();
  for (const batch::BatchView& batch : batches) {
    if (before != nullptr) RequireSameColumns(*before, batch, slot.partition);
    before = &batch;
  }
}

void DatasetRows::CheckTotal(const Slot& slot, const Attempt& attempt) const {
  if (totals_.empty() || !attempt.complete) return;
  const int64_t total = totals_[static_cast<size_t>(slot.partition)];
  Require(attempt.rows->rows() == total, ErrorCode::kDataLoss,
          "partition {} has {} rows, but {} rows were counted; rows of a dataset must be the same "
          "each time they are computed: cache or checkpoint the DataFrame",
          slot.partition, attempt.rows->rows(), total);
}

// True in two cases: the current attempt was lost and `attempt` begins with the rows already read;
// or `attempt` is complete and begins with all rows of the current one. No attempt grows while
// announcing_ is held, so rows are hashed without locking mutex_.
bool DatasetRows::MayReplaceCurrent(const Slot& slot, const Attempt& attempt) const {
  if (!slot.current_lost && !attempt.complete) return false;
  const PartitionRows& current = *slot.current.rows;
  // Unless the current attempt is lost, compares all of its rows, because readers may read more of
  // them in the meantime.
  int64_t rows = current.rows();
  if (slot.current_lost) {
    const std::lock_guard lock(mutex_);
    rows = slot.read_rows;
  }
  const bool enough = attempt.rows->rows() >= rows;
  const bool same = enough && (rows == 0 || attempt.rows->HashOf(rows) == current.HashOf(rows));
  // A difference is an error only if the current attempt was lost; otherwise `attempt` is ignored.
  // If `attempt` is incomplete and has too few rows, it may still deliver the rows already read.
  const bool undecided = !slot.current_lost || (!enough && !attempt.complete);
  Require(same || undecided, ErrorCode::kDataLoss,
          "attempt {} of partition {} has other rows than attempt {}, {} of which were already "
          "read; rows of a dataset must be the same each time they are computed: cache or "
          "checkpoint the DataFrame, or sort it by a unique key",
          attempt.rows->attempt(), slot.partition, current.attempt(), rows);
  return same;
}

void DatasetRows::AdoptIfBetter(Slot& slot, const Attempt& attempt) {
  const bool is_current = slot.current.rows == attempt.rows;
  const bool replaces = !is_current && MayReplaceCurrent(slot, attempt);
  if (is_current || replaces) CheckTotal(slot, attempt);
  const std::lock_guard lock(mutex_);
  if (is_current || replaces) {
    slot.current = attempt;
    if (replaces) slot.current_lost = false;
  }
  if (slot.current.complete) slot.attempts.clear();
  RecomputeBases();
  changed_.NotifyAll();
}

void DatasetRows::AbandonAttempt(int64_t partition, int64_t attempt) {
  const std::lock_guard announcing(announcing_);
  Slot& slot = SlotOf(partition);
  slot.lost.insert(attempt);
  if (slot.current.complete) return;
  // `current` keeps its file open: rows already read stay readable until another attempt has them.
  slot.attempts.erase(attempt);
  if (slot.current.rows == nullptr || slot.current.rows->attempt() != attempt) return;
  {
    const std::lock_guard lock(mutex_);
    slot.current_lost = true;
    RecomputeBases();
  }
  FailWith([&] { AdoptAnother(slot); });
}

// Looks for an attempt that can replace the lost one. Tries complete attempts first, then those
// with more rows.
void DatasetRows::AdoptAnother(Slot& slot) {
  std::vector<Attempt> others;
  for (const auto& [number, other] : slot.attempts) others.push_back(other);
  std::sort(others.begin(), others.end(), [](const Attempt& a, const Attempt& b) {
    return std::pair(a.complete, a.rows->rows()) > std::pair(b.complete, b.rows->rows());
  });
  // AdoptIfBetter() clears current_lost if it adopts the attempt.
  for (const Attempt& other : others) {
    if (slot.current_lost) AdoptIfBetter(slot, other);
  }
}

void DatasetRows::SetTotals(std::vector<int64_t> rows) {
  const std::lock_guard announcing(announcing_);
  Require(slots_.empty() || slots_.back().partition < static_cast<int64_t>(rows.size()),
          ErrorCode::kInvalidArgument,
          "row counts were given for {} partitions, but this rank has partition {}", rows.size(),
          slots_.empty() ? 0 : slots_.back().partition);
  {
    const std::lock_guard lock(mutex_);
    // The totals are published before the check, because a failed check ends all waits (FailWith).
    totals_ = std::move(rows);
    RecomputeBases();
    changed_.NotifyAll();
  }
  FailWith([&] {
    for (const Slot& slot : slots_) CheckTotal(slot, slot.current);
  });
}

void DatasetRows::Fail(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (error_ == nullptr) error_ = std::make_exception_ptr(Error(ErrorCode::kAborted, reason));
  changed_.NotifyAll();
}

// Number of rows that can be read from the partition. Of a lost attempt, these are only the rows
// already read, because only they must be identical in the attempt that replaces it.
int64_t DatasetRows::Available(const Slot& slot) {
  if (slot.current.rows == nullptr) return 0;
  return slot.current_lost ? slot.read_rows : slot.current.rows->rows();
}

void DatasetRows::RecomputeBases() {
  // Ends at the first partition of unknown size, because rows after it have no index yet.
  bases_.clear();
  prefix_ = 0;
  rows_ = -1;
  int64_t base = 0;
  bool gap = false;
  for (const Slot& slot : slots_) {
    bases_.push_back(base);
    const int64_t available = Available(slot);
    if (!gap) prefix_ = base + available;
    arrived_ = std::max(arrived_, prefix_);
    if (!slot.current.complete && totals_.empty()) return;
    const int64_t rows = slot.current.complete ? slot.current.rows->rows()
                                               : totals_[static_cast<size_t>(slot.partition)];
    gap = gap || available < rows;
    base += rows;
  }
  rows_ = base;
}

void DatasetRows::Wait(std::unique_lock<std::mutex>& lock, Deadline deadline, std::string_view what,
                       const std::function<bool()>& ready) {
  const bool in_time = changed_.Wait(lock, deadline, [&] {
    if (error_ != nullptr) std::rethrow_exception(error_);
    return ready();
  });
  if (in_time) return;
  const auto complete = std::count_if(slots_.begin(), slots_.end(),
                                      [](const Slot& slot) { return slot.current.complete; });
  Throw(ErrorCode::kDeadlineExceeded,
        "deadline exceeded while waiting for {}: {} of this rank's {} partitions are complete, {} "
        "rows arrived; check that Spark's tasks still run, or increase the timeout",
        what, complete, slots_.size(), prefix_);
}

int64_t DatasetRows::WaitRows() {
  std::unique_lock lock(mutex_);
  Wait(lock, Deadline::After(timeout_s_), "the number of this rank's rows",
       [this] { return rows_ >= 0; });
  return rows_;
}

std::vector<int64_t> DatasetRows::WaitTotals(double timeout_s) {
  const Deadline deadline = Deadline::After(CheckedTimeout(timeout_s));
  std::unique_lock lock(mutex_);
  Wait(lock, deadline, "the rows of all partitions", [this] { return !totals_.empty(); });
  return totals_;
}

const batch::BatchView* DatasetRows::WaitSchema() {
  std::unique_lock lock(mutex_);
  Wait(lock, Deadline::After(timeout_s_), "the first row",
       [this] { return first_ != nullptr || rows_ == 0; });
  return first_ == nullptr ? nullptr : &first_->batches().front();
}

std::vector<uint64_t> DatasetRows::WaitHashes() {
  std::unique_lock lock(mutex_);
  Wait(lock, Deadline::After(timeout_s_), "all of this rank's rows", [this] {
    return std::all_of(slots_.begin(), slots_.end(),
                       [](const Slot& slot) { return slot.current.complete; });
  });
  std::vector<uint64_t> hashes;
  for (const Slot& slot : slots_) hashes.push_back(slot.current.hash);
  return hashes;
}

int64_t DatasetRows::WaitIndex(int64_t end) {
  std::unique_lock lock(mutex_);
  Wait(lock, Deadline::After(timeout_s_), "the next rows",
       [&] { return prefix_ >= end || (rows_ >= 0 && prefix_ >= rows_); });
  return prefix_;
}

size_t DatasetRows::SlotAt(int64_t index) const {
  // An empty partition has the same base as the next one. Of partitions with equal bases, this
  // selects the last one, which has the row.
  const auto after = std::upper_bound(bases_.begin(), bases_.end(), index);
  return static_cast<size_t>(after - bases_.begin()) - 1;
}

int64_t DatasetRows::LastOf(std::span<const int64_t> indices) const {
  if (indices.empty()) return -1;
  const auto [first, last] = std::minmax_element(indices.begin(), indices.end());
  Require(*first >= 0, ErrorCode::kInvalidArgument, "row {} was requested; rows are counted from 0",
          *first);
  Require(*last < arrived_, ErrorCode::kInvalidArgument,
          "row {} was requested, but only {} rows of this rank have arrived", *last, arrived_);
  return *last;
}

// Waits only if an attempt was lost after WaitIndex(), until another attempt has written its rows
// again.
void DatasetRows::WaitForRows(std::unique_lock<std::mutex>& lock,
                              std::span<const int64_t> indices) {
  const int64_t last = LastOf(indices);
  Wait(lock, Deadline::After(timeout_s_), "rows of another attempt",
       [&] { return prefix_ > last || (rows_ >= 0 && prefix_ >= rows_); });
  Require(last < prefix_, ErrorCode::kDataLoss,
          "row {} of this rank had arrived, but a later attempt of its partition sent fewer rows: "
          "{} are left; rows of a dataset must be the same each time they are computed: cache or "
          "checkpoint the DataFrame",
          last, prefix_);
}

std::shared_ptr<const SelectedRows> DatasetRows::Select(std::vector<int64_t> indices) {
  auto selected = std::make_shared<SelectedRows>();
  // The rows of other requests have arrived, and the schema with them.
  if (indices.empty()) WaitSchema();
  selected->refs.reserve(indices.size());
  uint64_t bytes = 0;
  {
    std::unique_lock lock(mutex_);
    WaitForRows(lock, indices);
    if (first_ != nullptr) selected->schema = &first_->batches().front();
    selected->keep_alive.push_back(first_);
    // Looks up the slot only where the partition changes.
    std::vector<bool> held(slots_.size());
    size_t at = 0;
    for (const int64_t index : indices) {
      const bool same = index >= bases_[at] && (at + 1 == bases_.size() || index < bases_[at + 1]);
      if (!same) at = SlotAt(index);
      Slot& slot = slots_[at];
      const int64_t row = index - bases_[at];
      slot.read_rows = std::max(slot.read_rows, row + 1);
      const auto ref = slot.current.rows->At(row);
      bytes += PartitionRows::RowBytes(*ref.batch);
      selected->refs.push_back(ref);
      if (!held[at]) selected->keep_alive.push_back(slot.current.rows);
      held[at] = true;
    }
  }
  selected->indices = std::move(indices);
  LimitResidentPages(bytes);
  return selected;
}

std::vector<DatasetRows::RowId> DatasetRows::IdsOf(std::span<const int64_t> indices) {
  const std::lock_guard lock(mutex_);
  LastOf(indices);
  std::vector<RowId> ids;
  ids.reserve(indices.size());
  for (const int64_t index : indices) {
    const size_t slot = SlotAt(index);
    ids.push_back({slots_[slot].partition, index - bases_[slot]});
  }
  return ids;
}

// Each time kResidentBytes more have been read, checks that the files that contain values are
// unchanged, and drops all mapped pages.
void DatasetRows::LimitResidentPages(uint64_t read_bytes) {
  // Collects the files while locked, because madvise and stat should be called without the mutex.
  std::vector<std::shared_ptr<const PartitionRows>> current;
  std::vector<std::shared_ptr<const formats::MappedFile>> files;
  {
    const std::lock_guard lock(mutex_);
    touched_bytes_ += read_bytes;
    if (touched_bytes_ <= kResidentBytes) return;
    touched_bytes_ = 0;
    for (const Slot& slot : slots_) {
      if (slot.current.rows != nullptr) current.push_back(slot.current.rows);
    }
    files.assign(files_.begin(), files_.end());
  }
  FailWith([&] {
    for (const auto& file : files) {
      file->CheckUnchanged();
      file->DropPages();
    }
  });
  uint64_t mapped = 0;
  for (const auto& rows : current) mapped += rows->mapped_bytes();
  if (mapped <= kResidentBytes) return;
  for (const auto& rows : current) rows->DropPages();
}

}  // namespace hearth::dataset
