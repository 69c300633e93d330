#include "hearth/trainer/step/step_times.h"

#include <algorithm>
#include <utility>

namespace hearth::trainer {
namespace {

constexpr auto kInterval = std::chrono::seconds(1);

}  // namespace

std::optional<nlohmann::json> StepTimes::OnIteration(Waits waits, bool at_end,
                                                     Clock::time_point now) {
  waits_.rows += waits.rows;
  waits_.ranks += waits.ranks;
  const double seconds = std::chrono::duration<double>(now - since_).count();
  if (seconds <= 0 || (now - since_ < kInterval && !at_end)) return std::nullopt;
  // The event contains fractions of the interval. Time spent in neither of the waits counts as
  // computing.
  const Waits waited = std::exchange(waits_, {});
  since_ = now;
  return nlohmann::json{{"event", "rank"},
                        {"rank", rank_},
                        {"compute", std::max(0.0, 1 - (waited.rows + waited.ranks) / seconds)},
                        {"rows_wait", waited.rows / seconds},
                        {"ranks_wait", waited.ranks / seconds}};
}

}  // namespace hearth::trainer
