#pragma once

#include <stdexcept>
#include <string>

namespace hearth::caffe {

// An error from the host's memory allocation or from a device library.
class TensorError : public std::runtime_error {
 public:
  TensorError(bool out_of_memory, const std::string& message)
      : std::runtime_error(message), out_of_memory_(out_of_memory) {}
  bool out_of_memory() const { return out_of_memory_; }

 private:
  const bool out_of_memory_;
};

}  // namespace hearth::caffe
