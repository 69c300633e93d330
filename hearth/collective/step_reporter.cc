#include "hearth/collective/step_reporter.h"

#include <atomic>
#include <exception>
#include <mutex>

#include "hearth/base/log.h"
#include "hearth/rendezvous/member.h"

namespace hearth::collective {
namespace {

using rendezvous::GroupStep;

// Reports steps to the coordinator. Steps only help to name the ranks that have not arrived, so an
// operation does not fail if its step cannot be reported.
class OfMembers : public StepReporter {
 public:
  explicit OfMembers(rendezvous::Member& member) : member_(member) {}

  void Report(const GroupStep& step) noexcept override {
    try {
      member_.ReportStep(step);
    } catch (const std::exception& error) {  // only a hint for other ranks is lost
      if (warned_.exchange(true)) return;
      const log::Location here = {__FILE__, __LINE__};
      log::Write(log::Level::kWarning, here,
                 "stalls may be blamed on this rank, whose steps cannot be reported:");
      log::Write(log::Level::kWarning, here, error.what());
    }
  }

  std::optional<std::vector<int>> RanksBehind(const GroupStep& step) noexcept override {
    try {
      return member_.RanksBehind(step);
    } catch (const std::exception&) {  // some rank has failed; every member logs that
      return std::nullopt;
    }
  }

 private:
  rendezvous::Member& member_;
  std::atomic<bool> warned_ = false;
};

class OfThreads : public StepReporter {
 public:
  void Report(const GroupStep& step) noexcept override {
    const std::lock_guard lock(mutex_);
    step_tracker_.Record(step);
  }

  std::optional<std::vector<int>> RanksBehind(const GroupStep& step) noexcept override {
    const std::lock_guard lock(mutex_);
    return step_tracker_.RanksBehind(step.group, step.step);
  }

 private:
  // The threads of all ranks of this process share the tracker.
  std::mutex mutex_;
  rendezvous::StepTracker step_tracker_;
};

}  // namespace

std::shared_ptr<StepReporter> MakeStepReporter(rendezvous::Member& member) {
  return std::make_shared<OfMembers>(member);
}

std::shared_ptr<StepReporter> MakeThreadStepReporter() { return std::make_shared<OfThreads>(); }

}  // namespace hearth::collective
