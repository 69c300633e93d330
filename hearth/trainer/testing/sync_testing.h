// Runs the ranks of a gradient sum as threads of this process.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "hearth/base/thread.h"
#include "hearth/trainer/step/distributed_sync.h"

namespace hearth::trainer {

inline constexpr int kRanks = 3;

// Runs kRanks ranks as threads of this process.
class DistributedSyncTest : public ::testing::Test {
 protected:
  // Runs `body` as every rank, each on its own thread.
  template <typename Body>
  void RunRanks(Body body, int every = 1) {
    auto groups = collective::Group::ConnectThreads(kRanks);
    std::vector<Thread> threads;
    for (int rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back("rank", [&, rank] {
        const auto sync = MakeDistributedSync(*groups[static_cast<size_t>(rank)], 10, every);
        body(rank, *sync);
      });
    }
    for (Thread& thread : threads) thread.Join();
  }

  static caffe::ParamLayout Layout() {
    caffe::ParamLayout layout;
    for (const int64_t count : {5, 40, 1}) layout.Append(count);
    return layout;
  }
};

}  // namespace hearth::trainer
