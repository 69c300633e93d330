#pragma once

#include <string>

#include "hearth/rendezvous/rank_name.h"

namespace hearth::collective {

// Identifies another rank in error messages.
struct Peer {
  int rank = 0;
  std::string host;
  std::string name() const { return rendezvous::RankName(rank, host); }
};

}  // namespace hearth::collective
