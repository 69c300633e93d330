// Parallel loop over many items.
#pragma once

#include <cstdint>
#include <functional>

namespace hearth {

// Calls work(i) for every i in [0, count) on up to `threads` threads, including this one; if calls
// throw, rethrows one of the exceptions.
void ForEach(int64_t count, int threads, const std::function<void(int64_t)>& work);

}  // namespace hearth
