// Messages between two ranks that share memory, past the steps of all of them. Every rank has a
// box for each other one in the arena; its sender fills it and its owner empties it, chunk by
// chunk. Belongs to one rank; one thread uses it. Errors name the peer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hearth/base/deadline.h"
#include "hearth/collective/arena.h"
#include "hearth/collective/backend.h"
#include "hearth/collective/local_ranks.h"

namespace hearth::collective {

class Mailboxes {
 public:
  // All local ranks construct it together.
  Mailboxes(LocalRanks& ranks, Arena& arena, Deadline deadline);

  // Returns once the peer has taken all but the last chunk. `call` is compared with the peer's.
  void Send(const Call& call, Buffer data, int to, Deadline deadline);
  void Receive(const Call& call, Buffer data, int from, Deadline deadline);

 private:
  static constexpr size_t kChunkBytes = 32 << 10;

  struct Box {
    alignas(64) std::atomic<uint32_t> filled;   // chunks put in, by the sender
    alignas(64) std::atomic<uint32_t> emptied;  // chunks taken out, by the owner
    Call call;
    std::byte data[kChunkBytes];
  };

  Box& BoxOf(int owner, int sender) const;

  LocalRanks& ranks_;
  Arena& arena_;
  std::byte* own_;
};

}  // namespace hearth::collective
