// The first failure of a run, as reported to every rank and the driver.
#pragma once

#include <string>

#include "hearth/base/error.h"
#include "hearth/rendezvous/frame.h"

namespace hearth::rendezvous {

// Limit of a failure's text, which is sent to every rank; Shortened keeps the start and end of
// longer texts.
inline constexpr size_t kMaxFailureText = 32 << 10;
std::string Shortened(const std::string& text);

struct Failure {
  int rank = -1;          // -1: no particular rank (missing reservations, the coordinator itself)
  std::string host = {};  // of that rank
  ErrorCode code = ErrorCode::kInternal;
  std::string message = {};       // the rank's own text, or how it was lost
  bool lost = false;              // disconnected or stopped responding without reporting an error
  Json details = Json::object();  // additional fields from the rank: iteration, layer, ...

  // "rank 1 on host h failed: layer conv1: ..." or "rank 1 on host h went away ...".
  std::string Describe() const;

  // Limits the sizes of message and details.
  Json ToJson() const;
  // Missing fields keep their defaults; a field of a wrong type throws Json's exception.
  static Failure FromJson(const Json& json);
};

// For waits on another rank: throws kAborted with Describe()'s text.
[[noreturn]] void ThrowFailure(const Failure& failure);

}  // namespace hearth::rendezvous
