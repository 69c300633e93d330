// The same work for each of many items, on several threads.
#pragma once

#include <cstdint>
#include <functional>

namespace hearth {

// Calls work(i) for every i in [0, count) on up to `threads` threads, this one included; throws
// what one of them threw.
void ForEach(int64_t count, int threads, const std::function<void(int64_t)>& work);

}  // namespace hearth
