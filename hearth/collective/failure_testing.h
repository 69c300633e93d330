// How operations end, for tests of what goes wrong.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "hearth/base/error.h"

namespace hearth::collective {

// The timeout of what ends long before, in seconds.
inline constexpr double kLong = 30;

// The error of a call that must fail, and how long it took.
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
