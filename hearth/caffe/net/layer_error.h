#pragma once

#include <string>
#include <utility>

#include "hearth/base/error.h"

namespace hearth::caffe {

// An error in a layer. The layer's name is available as a field and is part of the message.
class LayerError : public Error {
 public:
  LayerError(ErrorCode code, std::string message, std::string layer)
      : Error(code, std::move(message)), layer_(std::move(layer)) {}
  LayerError(ErrorCode code, std::string message, std::string layer, const std::exception& cause)
      : Error(code, std::move(message), cause), layer_(std::move(layer)) {}

  const std::string& layer() const { return layer_; }

 private:
  std::string layer_;
};

// Like Require(), for a condition about the layer named `layer`.
template <typename... Args>
void RequireInLayer(const std::string& layer, bool condition, ErrorCode code,
                    fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) throw LayerError(code, fmt::format(format, std::forward<Args>(args)...), layer);
}

}  // namespace hearth::caffe
