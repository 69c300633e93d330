#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "hearth/rendezvous/step_tracker.h"

namespace hearth::rendezvous {
class Member;  // hearth/rendezvous/member.h
}

namespace hearth::collective {

// Reports the operations that ranks have reached, and finds ranks that have not. Any thread may use
// it.
class StepReporter {
 public:
  virtual ~StepReporter() = default;

  // Neither function throws. The member reports the loss of the rendezvous; the first step that
  // cannot be reported is logged as a warning.
  virtual void Report(const rendezvous::GroupStep& step) noexcept = 0;
  // Returns the ranks that have not reached the step, or nullopt if unknown. Called by one thread
  // per rank at a time. Blocks for at most a second.
  virtual std::optional<std::vector<int>> RanksBehind(
      const rendezvous::GroupStep& step) noexcept = 0;
};

// Reports to the coordinator. `member` outlives it.
std::shared_ptr<StepReporter> MakeStepReporter(rendezvous::Member& member);
// For ranks that are threads of this process.
std::shared_ptr<StepReporter> MakeThreadStepReporter();

}  // namespace hearth::collective
