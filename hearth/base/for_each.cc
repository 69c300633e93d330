#include "hearth/base/for_each.h"

#include <atomic>
#include <vector>

#include "hearth/base/thread.h"

namespace hearth {

void ForEach(int64_t count, int threads, const std::function<void(int64_t)>& work) {
  // Items are claimed one at a time rather than in equal ranges, because their costs may differ
  // widely.
  std::atomic<int64_t> next{0};
  const auto run = [&] {
    for (int64_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<Thread> helpers;
  for (int t = 1; t < threads && t < count; ++t) helpers.emplace_back("for_each", run);
  run();
  // If run() or a Join() throws, the destructors of the remaining helpers join them, so no helper
  // outlives `work` and `next`, which are on this stack.
  for (Thread& helper : helpers) helper.Join();
}

}  // namespace hearth
