// The page in shared memory through which a rank signals to the other ranks of its host. The owner
// writes everything but `bell`, which its peers also change to wake it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "hearth/base/fd.h"
#include "hearth/base/shared_memory.h"
#include "hearth/collective/call.h"

namespace hearth::collective {

inline constexpr size_t kNonceBytes = 16;

struct SharedPage {
  std::byte nonce[kNonceBytes];  // random: who reads the right one sees the same memory
  alignas(64) std::atomic<uint32_t> bell;
  std::atomic<uint32_t> waiting;  // 1 while the owner sleeps, or is about to, on its bell
  alignas(64) std::atomic<uint32_t> arrived;  // steps that the owner has reached
  std::atomic<uint32_t> left;                 // 1 once the owner failed or closed
  // What the owner does in step s is in calls[s % 2]: it cannot write step s + 2 before all peers
  // reached s + 1, thus before they have read step s. Peers compare the fingerprints, which are in
  // one cache line with `arrived`, and read a call only to name it.
  uint64_t fingerprints[2];
  alignas(64) Call calls[2];
  int32_t offered_fd;  // the memory of the Allocate that runs, in the owner's process
};

// What a peer needs to find a page; travels through the rendezvous.
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

// Nothing when the address leads elsewhere: another machine, another container or another user.
std::optional<Mapping> OpenSharedPage(const PageAddress& address);

// Opens a descriptor of another process of the same user; invalid when that cannot be.
Fd OpenForeignFd(int pid, int fd);

inline SharedPage& PageIn(const Mapping& mapping) {
  return *reinterpret_cast<SharedPage*>(mapping.data());
}

}  // namespace hearth::collective
