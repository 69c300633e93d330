// The first failure of a run, as it reaches every rank and the driver.
#pragma once

#include <string>

#include "hearth/base/error.h"
#include "hearth/rendezvous/frame.h"

namespace hearth::rendezvous {

// A failure's text goes to every rank and is read by people: a longer one keeps its start and end.
inline constexpr size_t kMaxFailureText = 32 << 10;
std::string Shortened(const std::string& text);

struct Failure {
  int rank = -1;          // -1: no single rank's (missing reservations, the coordinator itself)
  std::string host = {};  // of that rank
  ErrorCode code = ErrorCode::kInternal;
  std::string message = {};       // the rank's own text, or how it was lost
  bool lost = false;              // it went away or fell silent instead of reporting an error
  Json details = Json::object();  // what else the rank said: iteration, layer, ...

  // "rank 1 on host h failed: layer conv1: ..." or "rank 1 on host h went away ...".
  std::string Describe() const;

  // With a message and details that are not too long.
  Json ToJson() const;
  // Missing fields keep their defaults; a field of a wrong type throws Json's exception.
  static Failure FromJson(const Json& json);
};

// What a wait on another rank throws: kAborted with Describe()'s text.
[[noreturn]] void ThrowFailure(const Failure& failure);

}  // namespace hearth::rendezvous
