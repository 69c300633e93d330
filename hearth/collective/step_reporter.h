#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "hearth/rendezvous/step_tracker.h"

namespace hearth::rendezvous {
class Member;  // hearth/rendezvous/member.h
}

namespace hearth::collective {

// Reports the operations that ranks have reached, and finds ranks that have not. Any thread.
class StepReporter {
 public:
  virtual ~StepReporter() = default;

  // Neither function throws: the member reports the loss of the rendezvous, and the first step that
  // cannot be reported is a warning.
  virtual void Report(const rendezvous::GroupStep& step) noexcept = 0;
  // The ranks that have not reached the step; empty optional if unknown. One thread at a time per
  // rank. Blocks for at most a second.
  virtual std::optional<std::vector<int>> RanksBehind(
      const rendezvous::GroupStep& step) noexcept = 0;
};

// Reports to the coordinator. `member` outlives it.
std::shared_ptr<StepReporter> MakeStepReporter(rendezvous::Member& member);
// For ranks that are threads of this process.
std::shared_ptr<StepReporter> MakeThreadStepReporter();

}  // namespace hearth::collective
