#include "hearth/trainer/bad_rows.h"

#include "hearth/base/error.h"
#include "hearth/base/log.h"

namespace hearth::trainer {
namespace {

constexpr int64_t kLoggedRows = 10;
constexpr auto kEventInterval = std::chrono::seconds(1);

}  // namespace

void BadRows::Report(const std::string& row_id, const std::string& reason) {
  int64_t count;
  bool send;
  {
    std::lock_guard lock(mutex_);
    count = ++count_;
    const auto now = std::chrono::steady_clock::now();
    send = count == 1 || now - last_event_ >= kEventInterval;
    if (send) last_event_ = now;
  }
  if (count <= kLoggedRows) {
    log::Warning("Skipping row {} with its labels: {}{}", row_id, reason,
                 count == kLoggedRows ? " (further bad rows are only counted)" : "");
  }
  if (send) send_({{"event", "bad_row"}, {"count", count}, {"row", row_id}, {"reason", reason}});
  Require(limit_ < 0 || count <= limit_, ErrorCode::kDataLoss,
          "row {} cannot be used: {}; that makes {} bad rows where {} are allowed", row_id, reason,
          count, limit_);
}

int64_t BadRows::count() const {
  std::lock_guard lock(mutex_);
  return count_;
}

}  // namespace hearth::trainer
