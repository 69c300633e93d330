// Name of a rank in messages.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace hearth::rendezvous {

// "rank 1 on host b"
inline std::string RankName(int rank, std::string_view host) {
  return fmt::format("rank {} on host {}", rank, host);
}

}  // namespace hearth::rendezvous
