#include "hearth/collective/shared_memory/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

#include "hearth/base/error.h"

namespace hearth::collective {
namespace {

// Faults the pages in now rather than during the first operation. Old kernels reject the advice; on
// those, the first access to each page faults it in.
void TouchNow(const Mapping& mapping) {
#ifdef MADV_POPULATE_WRITE
  ::madvise(mapping.data(), mapping.size(), MADV_POPULATE_WRITE);
#endif
}

}  // namespace

std::byte* Arena::Allocate(size_t bytes, Deadline deadline) {
  const size_t size = RoundUpToPages(std::max<size_t>(bytes, 1));
  ranks_.Begin({.operation = Operation::kAllocate, .bytes = bytes});
  const Fd own = CreateSharedMemory("hearth-collective-arena", size);
  // Synchronize publishes the descriptor, because peers read it only after this rank has arrived.
  ranks_.page(ranks_.self()).offered_fd = own.get();
  ranks_.Synchronize(deadline);
  Block block;
  for (int i = 0; i < ranks_.size(); ++i) {
    if (i == ranks_.self()) {
      block.emplace_back(own.get(), 0, size);
      // Touches this rank's memory before a peer can. Linux places a page on the NUMA node of the
      // thread that first touches it, and the page's owner uses it most.
      TouchNow(block.back());
      continue;
    }
    const Fd peers = OpenForeignFd(ranks_.pid(i), ranks_.page(i).offered_fd);
    Require(peers.valid(), ErrorCode::kUnavailable, "the shared memory of {} cannot be opened",
            ranks_.peer(i).name());
    block.emplace_back(peers.get(), 0, size);
  }
  // No rank may close its descriptor, or offer another one, before all peers have opened it.
  ranks_.Synchronize(deadline);
  for (const Mapping& mapping : block) TouchNow(mapping);
  blocks_.push_back(std::move(block));
  return blocks_.back()[static_cast<size_t>(ranks_.self())].data();
}

std::optional<Arena::Location> Arena::Find(const void* data, size_t bytes) const {
  const auto address = reinterpret_cast<uintptr_t>(data);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const Mapping& own = blocks_[i][static_cast<size_t>(ranks_.self())];
    const auto begin = reinterpret_cast<uintptr_t>(own.data());
    if (address >= begin && address + bytes <= begin + own.size()) {
      return Location{i, address - begin};
    }
  }
  return std::nullopt;
}

}  // namespace hearth::collective
