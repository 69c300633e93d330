// futex(2) on words in memory that several processes may share.
#pragma once

#include <atomic>
#include <cstdint>

#include "hearth/base/deadline.h"

namespace hearth::collective {

// Sleeps while `word` holds `seen`. May return early, on any wake-up or signal; the caller checks
// its condition again. Returns at the deadline.
void WaitWhileEqual(const std::atomic<uint32_t>& word, uint32_t seen, Deadline deadline);

// Changes the word, so that a waiter about to sleep does not, and wakes sleeping waiters.
void BumpAndWake(std::atomic<uint32_t>& word);

}  // namespace hearth::collective
