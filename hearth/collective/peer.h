// How error messages name another rank.
#pragma once

#include <fmt/format.h>

#include <string>

namespace hearth::collective {

struct Peer {
  int rank = 0;
  std::string host;
  std::string name() const { return fmt::format("rank {} (host {})", rank, host); }
};

}  // namespace hearth::collective
