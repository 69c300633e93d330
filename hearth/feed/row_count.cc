#include "hearth/feed/row_count.h"

#include <algorithm>
#include <map>
#include <utility>

namespace hearth::feed {
namespace {

using Json = nlohmann::json;

// Minimum interval between reports to the driver of the rows taken.
constexpr auto kReportInterval = std::chrono::milliseconds(500);

}  // namespace

void RowCount::Take(Partition& partition, int64_t rows) {
  {
    const std::lock_guard lock(mutex_);
    taken_ += rows;
    partition.taken += rows;
    const auto now = std::chrono::steady_clock::now();
    // Skipping a report loses nothing, because Complete() reports the final count.
    if (reported_at_ && now - *reported_at_ < kReportInterval) return;
    reported_at_ = now;
  }
  ReportRows(partition);
}

void RowCount::Complete(const Partition& partition) {
  ReportRows(partition);
  {
    const std::lock_guard lock(mutex_);
    complete_.push_back({taken_, partition.feed(), partition.index(), partition.claim()});
  }
  ReportSafe();
}

void RowCount::Wait(std::chrono::duration<double> time) {
  const std::lock_guard lock(mutex_);
  waited_s_ += time.count();
}

int64_t RowCount::taken() const {
  const std::lock_guard lock(mutex_);
  return taken_;
}

void RowCount::Commit(int64_t rows) {
  {
    const std::lock_guard lock(mutex_);
    // A commit of more rows than were taken covers only the taken ones; a commit of fewer rows than
    // an earlier one has no effect.
    safe_ = std::max(safe_, std::min(rows, taken_));
  }
  ReportSafe();
}

void RowCount::ReportRows(const Partition& partition) {
  Json event = {{"event", "rows"},
                {"feed", partition.feed()},
                {"partition", partition.index()},
                {"rows", partition.taken.load()}};
  {
    const std::lock_guard lock(mutex_);
    event["taken"] = taken_;
    event["waited_s"] = waited_s_;
  }
  report_(event);
}

// Partitions end in the order in which their rows were taken, so the safe ones are at the front.
// Removes them before reporting, so that no other thread reports them again.
void RowCount::ReportSafe() {
  std::map<std::string, Json> safe;
  {
    const std::lock_guard lock(mutex_);
    for (; !complete_.empty() && complete_.front().rows <= safe_; complete_.pop_front()) {
      const End& end = complete_.front();
      safe[end.feed].push_back(Json::array({end.partition, end.claim}));
    }
  }
  for (auto& [feed, partitions] : safe) {
    report_({{"event", "safe"}, {"feed", feed}, {"partitions", std::move(partitions)}});
  }
}

}  // namespace hearth::feed
