#include "hearth/base/for_each.h"

#include <gmock/gmock.h>

#include <atomic>
#include <vector>

#include "hearth/base/error.h"

namespace hearth {
namespace {

using testing::ThrowsMessage;

TEST(ForEach, VisitsEveryIndexOnceOnAnyNumberOfThreads) {
  for (const int threads : {1, 3, 50}) {
    std::vector<std::atomic<int>> visits(20);
    ForEach(20, threads, [&](int64_t i) { ++visits[i]; });
    for (const auto& count : visits) EXPECT_EQ(count.load(), 1);
  }
  ForEach(0, 4, [](int64_t) { FAIL(); });
}

TEST(ForEach, RethrowsAnyThreadsError) {
  for (const int threads : {1, 4}) {
    EXPECT_THAT(([&] {
                  ForEach(100, threads, [](int64_t i) {
                    if (i == 60) Throw(ErrorCode::kDataLoss, "item 60");
                  });
                }),
                ThrowsMessage<Error>("item 60"));
  }
}

}  // namespace
}  // namespace hearth
