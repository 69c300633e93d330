// futex(2) on words in memory that several processes may share.
#pragma once

#include <atomic>
#include <cstdint>

#include "hearth/base/deadline.h"

namespace hearth::collective {

// Sleeps while `word` equals `seen`, until the deadline. May return early on any wake-up or signal,
// so the caller must check its condition again.
void WaitWhileEqual(const std::atomic<uint32_t>& word, uint32_t seen, Deadline deadline);

// Changes the word, so that waiters about to sleep return at once, and wakes sleeping waiters.
void BumpAndWake(std::atomic<uint32_t>& word);

}  // namespace hearth::collective
