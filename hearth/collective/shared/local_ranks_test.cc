#include "hearth/collective/shared/local_ranks.h"

#include <gtest/gtest.h>

#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/testing/deadline_testing.h"
#include "hearth/collective/testing/local_ranks_testing.h"

namespace hearth::collective {
namespace {

TEST(LocalRanks, SynchronizeMakesWritesVisible) {
  // Not atomic. Sanitizers do not see the ordering: each rank maps the pages separately.
  std::vector<int> written(4);
  RunLocal(4, [&](LocalRanks& ranks) {
    ranks.Begin({});
    for (int round = 1; round <= 200; ++round) {
      written[static_cast<size_t>(ranks.self())] = round;
      ranks.Synchronize(Soon());
      for (const int value : written) EXPECT_EQ(value, round);
      ranks.Synchronize(Soon());
    }
  });
}

TEST(LocalRanks, AMemberThatArrivedBeforeItLeftHasArrived) {
  RunLocal(2, [&](LocalRanks& ranks) {
    ranks.Begin({});
    ranks.Synchronize(Soon());
    ranks.Leave();
  });
}

}  // namespace
}  // namespace hearth::collective
