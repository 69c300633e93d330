// Helpers for tests of failing operations.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "hearth/base/error.h"

namespace hearth::collective {

// Timeout, in seconds, of operations that are expected to end much earlier.
inline constexpr double kLong = 30;

// Error of a call that must fail, and its duration.
struct Outcome {
  ErrorCode code = ErrorCode::kInternal;
  std::string message = "nothing was thrown";
  double seconds = 0;
};

inline Outcome OutcomeOf(const std::function<void()>& call) {
  Outcome outcome;
  const auto start = std::chrono::steady_clock::now();
  try {
    call();
  } catch (const Error& error) {
    outcome.code = error.code();
    outcome.message = error.message();
  }
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

}  // namespace hearth::collective
