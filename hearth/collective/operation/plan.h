// The messages of one rank in one step of an algorithm. Algorithms fill plans; a transport executes
// them. The plans of two ranks must list the messages between them in the same order.
#pragma once

#include <cstddef>
#include <vector>

#include "hearth/collective/operation/combine.h"

namespace hearth::collective {

// A message to a peer.
struct Send {
  int peer = 0;  // index of the peer in the transport
  const std::byte* data = nullptr;
  size_t bytes = 0;
  int after = -1;  // index of a receive that must complete first, or -1
};

// A message from a peer.
struct Receive {
  int peer = 0;
  std::byte* data = nullptr;
  size_t bytes = 0;
  bool combine = false;  // data = data op received, instead of data = received
};

// The messages of one step. A plan is reused, so that operations do not allocate.
struct Plan {
  std::vector<Send> sends;
  std::vector<Receive> receives;
  Arithmetic arithmetic;

  void Clear() {
    sends.clear();
    receives.clear();
  }
};

}  // namespace hearth::collective
