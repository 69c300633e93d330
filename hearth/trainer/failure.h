// Describes why a run ended, and where: the content of the driver's exception.
#pragma once

#include <cstdint>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>

#include "hearth/base/error.h"

namespace hearth::trainer {

struct Failure {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  int rank = 0;  // of the process
  std::string host;
  int64_t iteration = -1;  // -1: before the first
  std::string layer;       // empty: not in a layer
  bool lost = false;       // the process died instead of reporting an error
  bool by_peer = false;    // another rank's failure; all fields are about that rank

  // The control channel's "error" event, which is also the rendezvous' failure message.
  nlohmann::json ToEvent() const;
};

// Code and message of any exception, not only of hearth::Error.
Failure DescribeException(const std::exception_ptr& exception);

}  // namespace hearth::trainer
