#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "hearth/base/fd.h"
#include "hearth/base/shared_memory.h"
#include "hearth/collective/operation/call.h"

namespace hearth::collective {

inline constexpr size_t kNonceBytes = 16;

// A page of shared memory through which a rank signals to the other ranks of its host. Only the
// owner writes to it, except for `bell`, which peers also change to wake it.
struct SharedPage {
  std::byte nonce[kNonceBytes];  // random: a reader of the right value sees the same memory
  alignas(64) std::atomic<uint32_t> bell;
  std::atomic<uint32_t> waiting;  // 1 while the owner sleeps, or is about to sleep, on its bell
  alignas(64) std::atomic<uint32_t> arrived;  // steps that the owner has reached
  std::atomic<uint32_t> left;                 // 1 once the owner has failed or closed
  // The owner's call at step s is in calls[s % 2]: it cannot write step s + 2 before all peers have
  // reached s + 1 and thus read step s. Peers compare the fingerprints, which share a cache line
  // with `arrived`, and read a call only to name it.
  uint64_t fingerprints[2];
  alignas(64) Call calls[2];
  int32_t offered_fd;  // the memory of the running Allocate, in the owner's process
};

// Address of a page for peers; sent through the rendezvous.
struct PageAddress {
  int pid = 0;
  int fd = -1;
  std::string nonce;
};

// A new page of this process. Keep `fd` open until the peers have opened it.
struct OwnPage {
  Fd fd;
  Mapping mapping;
  PageAddress address;
};
OwnPage CreateSharedPage();

// Empty if the address is not reachable: another machine, container or user.
std::optional<Mapping> OpenSharedPage(const PageAddress& address);

// Opens a descriptor of another process of the same user; invalid on failure.
Fd OpenForeignFd(int pid, int fd);

inline SharedPage& PageIn(const Mapping& mapping) {
  return *reinterpret_cast<SharedPage*>(mapping.data());
}

}  // namespace hearth::collective
