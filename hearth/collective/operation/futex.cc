#include "hearth/collective/operation/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cmath>
#include <ctime>

namespace hearth::collective {
namespace {

// The kernel compares the 32 bits at the word's address, so the atomic must consist of these bits
// alone.
static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
static_assert(std::atomic<uint32_t>::is_always_lock_free);

}  // namespace

void WaitWhileEqual(const std::atomic<uint32_t>& word, uint32_t seen, Deadline deadline) {
  const double left = deadline.remaining();
  // FUTEX_WAIT expects a relative timeout; null means no limit.
  timespec limit = {};
  const bool limited = std::isfinite(left);
  if (limited) {
    limit.tv_sec = static_cast<time_t>(left);
    limit.tv_nsec = static_cast<long>((left - std::floor(left)) * 1e9);
  }
  // FUTEX_PRIVATE_FLAG is not set, because the waker may be another process.
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, limited ? &limit : nullptr, nullptr, 0);
}

void BumpAndWake(std::atomic<uint32_t>& word) {
  // The word must change before the wake-up. If a waiter has read the old value but does not sleep
  // yet, the kernel does not let it sleep, because it compares the word with `seen` under a lock.
  word.fetch_add(1, std::memory_order_seq_cst);
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace hearth::collective
