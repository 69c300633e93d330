#include "hearth/collective/shared_memory/mailbox.h"

#include <algorithm>
#include <cstring>

#include "hearth/base/error.h"

namespace hearth::collective {
namespace {

// Returns the call with fixed values in the fields in which matching calls of sender and receiver
// differ.
Call Normal(Call call, int receiver) {
  call.operation = Operation::kSend;
  call.root = receiver;
  call.location = 0;
  return call;
}

}  // namespace

Mailboxes::Mailboxes(LocalRanks& ranks, Arena& arena, Deadline deadline)
    : ranks_(ranks),
      arena_(arena),
      own_(arena.Allocate(sizeof(Box) * static_cast<size_t>(ranks.size()), deadline)) {}

// All ranks' boxes are at the same location in the arena, because Allocate is collective.
Mailboxes::Box& Mailboxes::BoxOf(int owner, int sender) const {
  const auto location = *arena_.Find(own_, sizeof(Box));
  std::byte* boxes = arena_.At(location, owner);
  return *reinterpret_cast<Box*>(boxes + sizeof(Box) * static_cast<size_t>(sender));
}

// A box holds one chunk: it is empty while both counters are equal, and full otherwise. Each
// counter has only one writer, so no lock is needed. The counters may wrap around, because they are
// only compared for equality. The loops run once for an empty message too, so that its call is
// compared.
void Mailboxes::Send(const Call& call, Buffer data, int to, Deadline deadline) {
  Box& box = BoxOf(to, ranks_.self());
  const size_t bytes = data.bytes();
  size_t at = 0;
  do {
    const uint32_t chunk = box.filled.load(std::memory_order_relaxed);
    ranks_.Await(to, deadline,
                 [&] { return box.emptied.load(std::memory_order_acquire) == chunk; });
    const size_t size = std::min(kChunkBytes, bytes - at);
    box.call = Normal(call, ranks_.peer(to).rank);
    if (size > 0) std::memcpy(box.data, data.data + at, size);
    box.filled.store(chunk + 1, std::memory_order_release);
    ranks_.Wake(to);
    at += size;
  } while (at < bytes);
}

void Mailboxes::Receive(const Call& call, Buffer data, int from, Deadline deadline) {
  Box& box = BoxOf(ranks_.self(), from);
  const size_t bytes = data.bytes();
  size_t at = 0;
  do {
    const uint32_t chunk = box.emptied.load(std::memory_order_relaxed);
    ranks_.Await(from, deadline,
                 [&] { return box.filled.load(std::memory_order_acquire) != chunk; });
    const Call sent = box.call;
    Require(sent == Normal(call, ranks_.peer(ranks_.self()).rank), ErrorCode::kInvalidArgument,
            "{} called {}; sender and receiver must agree", ranks_.peer(from).name(),
            sent.Describe());
    const size_t size = std::min(kChunkBytes, bytes - at);
    if (size > 0) std::memcpy(data.data + at, box.data, size);
    box.emptied.store(chunk + 1, std::memory_order_release);
    ranks_.Wake(from);
    at += size;
  } while (at < bytes);
}

}  // namespace hearth::collective
