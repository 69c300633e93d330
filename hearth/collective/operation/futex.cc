#include "hearth/collective/operation/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cmath>
#include <ctime>

namespace hearth::collective {
namespace {

// The kernel compares the 32 bits at the word's address: an atomic must not contain a lock.
static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
static_assert(std::atomic<uint32_t>::is_always_lock_free);

}  // namespace

void WaitWhileEqual(const std::atomic<uint32_t>& word, uint32_t seen, Deadline deadline) {
  const double left = deadline.remaining();
  // FUTEX_WAIT takes a relative time, and null for no limit.
  timespec limit = {};
  const bool limited = std::isfinite(left);
  if (limited) {
    limit.tv_sec = static_cast<time_t>(left);
    limit.tv_nsec = static_cast<long>((left - std::floor(left)) * 1e9);
  }
  // No FUTEX_PRIVATE_FLAG: the waker may be another process.
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, limited ? &limit : nullptr, nullptr, 0);
}

void BumpAndWake(std::atomic<uint32_t>& word) {
  // The word changes before the wake-up. A waiter that has read the old value but does not sleep
  // yet is refused by the kernel, which compares the word with `seen` under a lock.
  word.fetch_add(1, std::memory_order_seq_cst);
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace hearth::collective
