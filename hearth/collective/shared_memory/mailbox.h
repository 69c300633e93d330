#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hearth/base/deadline.h"
#include "hearth/collective/operation/backend.h"
#include "hearth/collective/shared_memory/arena.h"
#include "hearth/collective/shared_memory/local_ranks.h"

namespace hearth::collective {

// Messages between two ranks that share memory, independent of the other ranks. Every rank has a
// mailbox for each peer in the arena; the sender fills it and the owner empties it, chunk by chunk.
// Belongs to one rank and is used by one thread.
class Mailboxes {
 public:
  // Collective over all local ranks; waits and throws as Arena::Allocate does.
  Mailboxes(LocalRanks& ranks, Arena& arena, Deadline deadline);

  // Returns once the peer has received all but the last chunk, which is in the mailbox; the caller
  // may then reuse `data`. `call` is compared with the peer's call. Throws kDeadlineExceeded or
  // kUnavailable (the peer left), both naming the peer, or kAborted.
  void Send(const Call& call, Buffer data, int to, Deadline deadline);
  // Returns once all data has arrived. Throws as Send does, and kInvalidArgument, with the peer's
  // call, if the calls do not match.
  void Receive(const Call& call, Buffer data, int from, Deadline deadline);

 private:
  static constexpr size_t kChunkBytes = 32 << 10;

  // Chunks from one sender to one owner, in shared memory.
  struct Box {
    alignas(64) std::atomic<uint32_t> filled;   // chunks written; only the sender changes it
    alignas(64) std::atomic<uint32_t> emptied;  // chunks read; only the owner changes it
    Call call;
    std::byte data[kChunkBytes];
  };

  Box& BoxOf(int owner, int sender) const;

  LocalRanks& ranks_;
  Arena& arena_;
  std::byte* own_;
};

}  // namespace hearth::collective
