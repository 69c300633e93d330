#include "hearth/collective/stall_watch.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/log.h"

namespace hearth::collective {
namespace {

// A rank reports its step once it has waited for a tick. This is early enough for other ranks'
// queries, and rare enough to cost nothing.
constexpr double kLongestTick = 1;
constexpr double kShortestTick = 0.01;
constexpr double kTicksPerStall = 8;
// Ticks until the other ranks know that a rank has reached a step.
constexpr double kTicksToKnow = 3;
constexpr size_t kNamedRanks = 16;

std::atomic<uint64_t> reports{0}, timeouts{0};

double TickOf(double stall_s) {
  if (stall_s <= 0) return kLongestTick;
  return std::clamp(stall_s / kTicksPerStall, kShortestTick, kLongestTick);
}

}  // namespace

double StallSeconds(double preferred) {
  const char* value = std::getenv("HEARTH_STALL_SECONDS");
  if (value == nullptr || *value == '\0') return preferred;
  const std::string_view text(value);
  double seconds = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  Require(problem == std::errc() && end == text.data() + text.size() && std::isfinite(seconds) &&
              seconds >= 0,
          ErrorCode::kInvalidArgument,
          "HEARTH_STALL_SECONDS={} in the environment must be a number of seconds, or 0 for "
          "no reports of waiting operations",
          text);
  return seconds;
}

StallCounts CountStalls() { return {.reports = reports, .timeouts = timeouts}; }

void StallWatch::CountTimeout() { ++timeouts; }

StallWatch::StallWatch(std::string group, std::vector<Peer> ranks, int self, double stall_s,
                       std::shared_ptr<StepReporter> reporter)
    : group_(std::move(group)),
      ranks_(std::move(ranks)),
      self_(self),
      stall_s_(stall_s),
      tick_s_(TickOf(stall_s)),
      reporter_(std::move(reporter)) {
  thread_ = Thread("stall watch", [this] { Watch(); });
}

StallWatch::~StallWatch() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
}

void StallWatch::Begin(const Call& call, Deadline deadline) {
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  if (!IsPair(call.operation)) ++running_.step;
  ++running_.number;
  running_.call = call;
  running_.begun = now;
  running_.deadline = deadline;
  running_.runs = true;
}

void StallWatch::End(bool succeeded) {
  const std::lock_guard lock(mutex_);
  running_.runs = false;
  running_.succeeded = succeeded;
}

StallWatch::Running StallWatch::Now() {
  const std::lock_guard lock(mutex_);
  return running_;
}

rendezvous::GroupStep StallWatch::Self(const Running& running) const {
  return {group_, self_, static_cast<int>(ranks_.size()), running.step};
}

// A rank reports its step only after it has waited for a tick. Until then, the other ranks do not
// know that it has arrived.
std::string StallWatch::MissingRanks() {
  const Running running = Now();
  if (!running.runs || IsPair(running.call.operation) ||
      running.seconds() < kTicksToKnow * tick_s_) {
    return "";
  }
  const auto absent = QueryMissingRanks(running);
  return absent ? NamesOf(*absent) : "";
}

void StallWatch::Watch() {
  std::unique_lock lock(mutex_);
  const std::chrono::duration<double> tick(tick_s_);
  while (!changed_.wait_for(lock, tick, [&] { return ending_; })) {
    // Unlocks because Poll may wait for the rendezvous, and Begin and End must not wait for the
    // rendezvous.
    lock.unlock();
    Poll();
    lock.lock();
  }
}

void StallWatch::Poll() {
  const Running running = Now();
  const bool same = reported_ && reported_->number == running.number;
  if (reported_ && !(same && running.runs)) {
    // The end of a failed operation is not logged, because the operation's error says more.
    if (!same || running.succeeded) {
      log::Warning("{} continues: {} took {:.3g} s", Name(), reported_->call.Describe(),
                   reported_->seconds());
    }
    reported_.reset();
  }
  const double seconds = running.seconds();
  if (seconds < tick_s_) return;
  // Reports finished operations as well, because a broadcast's root may finish before the others
  // arrive.
  if (reported_step_ < running.step) {
    reported_step_ = running.step;
    reporter_->Report(Self(running));
  }
  if (!running.runs || stall_s_ <= 0) return;
  if (seen_ != running.number) {
    seen_ = running.number;
    next_report_s_ = stall_s_;
  }
  if (seconds >= next_report_s_) Report(running);
}

void StallWatch::Report(const Running& running) {
  const std::string reason = ReasonOf(running);
  const Running now = Now();
  if (now.number != running.number || !now.runs) return;  // the operation has ended meanwhile
  reported_ = running;
  const double seconds = running.seconds();
  // Doubles the interval, so that an operation that waits for an hour logs a few lines instead of
  // hundreds.
  while (next_report_s_ <= seconds) next_report_s_ *= 2;
  const double left = running.deadline.remaining();
  ++reports;  // counts the warning before it appears in the log
  log::Warning("{} has waited for {:.3g} s in {}: {}{}", Name(), seconds, running.call.Describe(),
               reason, std::isfinite(left) ? fmt::format("; it times out in {:.0f} s", left) : "");
}

std::string StallWatch::ReasonOf(const Running& running) {
  if (IsPair(running.call.operation)) {
    return fmt::format("{} has not taken part",
                       ranks_[static_cast<size_t>(running.call.root)].name());
  }
  const auto absent = QueryMissingRanks(running);
  if (!absent) return "the rendezvous does not know which ranks have not arrived";
  if (absent->empty()) return "all ranks have arrived, but not all of their data";
  return fmt::format("{} {} not arrived", NamesOf(*absent), absent->size() == 1 ? "has" : "have");
}

std::optional<std::vector<int>> StallWatch::QueryMissingRanks(const Running& running) {
  // Locks because two threads query: the background thread, and the thread whose operation has
  // failed. Reports this rank's step first, so that this rank is not named as missing.
  const std::lock_guard lock(query_mutex_);
  reporter_->Report(Self(running));
  return reporter_->RanksBehind(Self(running));
}

std::string StallWatch::NamesOf(const std::vector<int>& ranks) const {
  std::string names;
  for (size_t i = 0; i < std::min(ranks.size(), kNamedRanks); ++i) {
    names += (i == 0 ? "" : ", ") + ranks_[static_cast<size_t>(ranks[i])].name();
  }
  if (ranks.size() > kNamedRanks) names += fmt::format(" and {} more", ranks.size() - kNamedRanks);
  return names;
}

}  // namespace hearth::collective
