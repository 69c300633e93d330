#pragma once

#include <cstdint>
#include <string>

#include "hearth/caffe/net/layer_error.h"

namespace hearth::caffe {

// An error in an iteration. The iteration's number is a field, and also part of the message.
class IterationError : public LayerError {
 public:
  // `layer` is empty if no layer caused the error.
  IterationError(ErrorCode code, int64_t iteration, const std::string& reason, std::string layer)
      : LayerError(code, fmt::format("iteration {}: {}", iteration, reason), std::move(layer)),
        iteration_(iteration) {}

  int64_t iteration() const { return iteration_; }

 private:
  int64_t iteration_;
};

}  // namespace hearth::caffe
