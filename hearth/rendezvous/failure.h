#pragma once

#include <cstdint>
#include <string>

#include "hearth/base/error.h"
#include "hearth/rendezvous/frame.h"

namespace hearth::rendezvous {

// Maximum length of a failure's text, which is sent to every rank. Shortened() keeps the start and
// the end of a longer text.
inline constexpr size_t kMaxFailureText = 32 << 10;
std::string Shortened(const std::string& text);

// The first failure of a run, as reported to every rank and the driver.
struct Failure {
  int rank = -1;          // -1: no particular rank (missing reservations, the coordinator)
  std::string host = {};  // host of that rank
  ErrorCode code = ErrorCode::kInternal;
  std::string message = {};  // the rank's own text, or how the rank was lost
  bool lost = false;         // the rank disconnected or fell silent
  int64_t iteration = -1;    // iteration of a training; -1: before the first
  std::string layer = {};    // empty: the failure was not in a layer
  bool consequence = false;  // the rank only noticed that another one left; see coordinator.cc

  // "rank 1 on host h failed: layer conv1: ..." or "rank 1 on host h went away ...".
  std::string Describe() const;
  // True if rank `own` has reported this failure about itself.
  bool IsReportOf(int own) const { return rank == own && !lost; }

  // Shortens `message` if it is too long.
  Json ToJson() const;
  // Missing fields keep their defaults; a field of a wrong type throws Json's exception.
  static Failure FromJson(const Json& json);
};

// Throws kAborted with Describe()'s text. Used by waits for another rank when the cluster fails.
[[noreturn]] void ThrowFailure(const Failure& failure);

}  // namespace hearth::rendezvous
