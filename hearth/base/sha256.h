// Incremental SHA-256, for checksums of files and weights.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace hearth {

// A hash in progress. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Append(std::string_view bytes);
  // Returns 64 hex digits; Append must not be called afterwards.
  std::string Hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string Sha256Hex(std::string_view bytes);

}  // namespace hearth
