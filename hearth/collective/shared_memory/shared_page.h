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
// owner writes to the page, except for `bell`, which peers also change to wake the owner.
struct SharedPage {
  // Random; a process that reads this value has mapped the same memory.
  std::byte nonce[kNonceBytes];
  alignas(64) std::atomic<uint32_t> bell;
  std::atomic<uint32_t> waiting;  // 1 while the owner sleeps, or is about to sleep, on its bell
  alignas(64) std::atomic<uint32_t> arrived;  // steps that the owner has reached
  std::atomic<uint32_t> left;                 // 1 once the owner has failed or closed
  // The owner's call at step s is in calls[s % 2]. The owner cannot overwrite it at step s + 2
  // before all peers have reached step s + 1, and by then they have read it. Peers compare the
  // fingerprints, which share a cache line with `arrived`, and read a call only for an error
  // message.
  uint64_t fingerprints[2];
  alignas(64) Call calls[2];
  int32_t offered_fd;  // descriptor of the memory of the running Allocate, in the owner's process
};

// Address of a page, which peers receive through the rendezvous.
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

// Returns an empty optional if the page cannot be opened: its owner is on another machine, in
// another container or of another user.
std::optional<Mapping> OpenSharedPage(const PageAddress& address);

// Opens a descriptor of another process of the same user. Returns an invalid Fd on failure.
Fd OpenForeignFd(int pid, int fd);

inline SharedPage& PageIn(const Mapping& mapping) {
  return *reinterpret_cast<SharedPage*>(mapping.data());
}

}  // namespace hearth::collective
