#include "hearth/trainer/rows/invalid_rows.h"

#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/base/log.h"

namespace hearth::trainer {
namespace {

// Enough names to find the cause, but few enough for a log line and an error.
constexpr size_t kNamedRows = 10;
// Below this number of rows, a fraction means little, because the first row may be the only invalid
// one.
constexpr int64_t kEnoughRows = 1000;
constexpr auto kEventInterval = std::chrono::seconds(1);

}  // namespace

void InvalidRows::Report(const std::string& row_id, const std::string& reason) {
  int64_t count;
  bool send, name;
  {
    std::lock_guard lock(mutex_);
    count = ++count_;
    const auto now = std::chrono::steady_clock::now();
    send = count == 1 || now - last_event_ >= kEventInterval;
    if (send) last_event_ = now;
    name = AddName(row_id, reason);
  }
  // Logs and sends without the lock, because both may wait for the worker, and the threads that
  // decode rows need the lock.
  if (name) log::Warning("Skipping row {} with its labels: {}", row_id, reason);
  if (send) {
    send_({{"event", "invalid_row"}, {"count", count}, {"row", row_id}, {"reason", reason}});
  }
}

void InvalidRows::AddRestoredName(const std::string& row_id, const std::string& reason) {
  std::lock_guard lock(mutex_);
  AddName(row_id, reason);
}

// Returns true if the row had not been named yet.
bool InvalidRows::AddName(const std::string& row_id, const std::string& reason) {
  const bool known =
      std::any_of(named_.begin(), named_.end(), [&](const Named& row) { return row.id == row_id; });
  if (known || named_.size() == kNamedRows) return false;
  named_.push_back({row_id, reason});
  return true;
}

bool InvalidRows::IsTooMany(int64_t rows, int64_t bad, bool at_end_of_epoch) const {
  if (limit_.rows >= 0 && bad > limit_.rows) return true;
  if (limit_.fraction < 0 || (rows < kEnoughRows && !at_end_of_epoch)) return false;
  return static_cast<double>(bad) > limit_.fraction * static_cast<double>(rows);
}

void InvalidRows::Check(int64_t rows, int64_t bad, bool at_end_of_epoch) const {
  if (!IsTooMany(rows, bad, at_end_of_epoch)) return;
  std::lock_guard lock(mutex_);
  // The counts cover all ranks, so every rank gets the same result. A rank that has no invalid rows
  // itself does not throw, so that the error comes from a rank that can name some.
  if (named_.empty()) return;
  const std::string allowed = limit_.rows >= 0 ? fmt::format("{}", limit_.rows)
                                               : fmt::format("a fraction of {}", limit_.fraction);
  Throw(ErrorCode::kDataLoss,
        "{} of {} rows cannot be used, but -maxBadRecords allows {}; fix or leave out the rows, "
        "or allow more: {}",
        bad, rows, allowed, NamesAndReason());
}

void InvalidRows::RejectAllInvalid(int64_t rows) const {
  std::lock_guard lock(mutex_);
  if (named_.empty()) return;
  Throw(ErrorCode::kDataLoss, "no rows to train on: none of {} can be used: {}", rows,
        NamesAndReason());
}

std::string InvalidRows::NamesAndReason() const {
  std::string names;
  for (const Named& row : named_) names += (names.empty() ? "" : ", ") + row.id;
  return fmt::format("{} ({}: {})", names, named_.front().id, named_.front().reason);
}

int64_t InvalidRows::count() const {
  std::lock_guard lock(mutex_);
  return count_;
}

void InvalidRows::SetCount(int64_t count) {
  std::lock_guard lock(mutex_);
  count_ = count;
}

}  // namespace hearth::trainer
