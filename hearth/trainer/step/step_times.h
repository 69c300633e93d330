#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

namespace hearth::trainer {

// Measures a rank's time by kind: computing, waiting for rows, waiting for other ranks. Used by one
// thread.
class StepTimes {
 public:
  using Clock = std::chrono::steady_clock;

  // The waits of one iteration, in seconds.
  struct Waits {
    double rows = 0, ranks = 0;
  };

  StepTimes(int rank, Clock::time_point start) : rank_(rank), since_(start) {}

  // Returns the event "rank", with shares of the time since the previous event, once per second and
  // if `at_end`.
  std::optional<nlohmann::json> OnIteration(Waits waits, bool at_end, Clock::time_point now);

 private:
  const int rank_;
  Clock::time_point since_;
  Waits waits_;
};

}  // namespace hearth::trainer
