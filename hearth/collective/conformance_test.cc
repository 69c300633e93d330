// Conformance suite of all transports: operations, types, sizes and numbers of ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <tuple>
#include <vector>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/collective/testing/ranks_testing.h"

namespace hearth::collective {
namespace {

// Below, at and above the limits of the algorithms, and not divisible by the world.
std::vector<size_t> Counts(int world) {
  const auto n = static_cast<size_t>(world);
  return {0, 1, n - 1, n, n + 1, 1023, 8192, 8193, 66001, 300001};
}

// Small integers, so that every order of summation gives the same result.
template <typename T>
T Value(int rank, size_t i) {
  return static_cast<T>((i * 7 + static_cast<size_t>(rank) * 13) % 23);
}

template <typename T>
T Expected(Op op, int world, size_t i) {
  T result = Value<T>(0, i);
  for (int rank = 1; rank < world; ++rank) {
    const T value = Value<T>(rank, i);
    if (op == Op::kSum) result = static_cast<T>(result + value);
    if (op == Op::kMin) result = std::min(result, value);
    if (op == Op::kMax) result = std::max(result, value);
  }
  return result;
}

// Runs the test on memory of the group and on other memory.
template <typename T, typename Body>
void WithBothMemories(Group& group, size_t count, const Body& body) {
  std::vector<T> other(count + 1);
  body(other.data());
  body(static_cast<T*>(group.Allocate(count * sizeof(T))));
}

template <typename T>
void Fill(const Group& group, T* data, size_t count) {
  for (size_t i = 0; i < count; ++i) data[i] = Value<T>(group.rank(), i);
}

template <typename T>
size_t CountWrong(const T* data, Range range, Op op, int world) {
  size_t wrong = 0;
  for (size_t i = range.begin; i < range.end; ++i) {
    wrong += data[i] != Expected<T>(op, world, i) ? 1 : 0;
  }
  return wrong;
}

class Conformance : public ::testing::TestWithParam<std::tuple<Wiring, int>> {
 protected:
  void SetUp() override {
    if (const std::string reason = SkipReason(wiring()); !reason.empty()) GTEST_SKIP() << reason;
  }

  Wiring wiring() const { return std::get<0>(GetParam()); }
  int world() const { return std::get<1>(GetParam()); }

  void Run(const std::function<void(Group&)>& body) { RunGroups(wiring(), world(), body); }

  template <typename T>
  void AllReduceAll(DataType type, Op op) {
    Run([&](Group& group) {
      for (const size_t count : Counts(world())) {
        WithBothMemories<T>(group, count, [&](T* data) {
          Fill(group, data, count);
          group.AllReduce(data, count, type, op, Soon());
          EXPECT_EQ(CountWrong(data, {0, count}, op, world()), 0u) << count << " elements";
        });
      }
    });
  }
};

TEST_P(Conformance, AllReduceSumsFloat32) { AllReduceAll<float>(DataType::kFloat32, Op::kSum); }
TEST_P(Conformance, AllReduceSumsFloat64) { AllReduceAll<double>(DataType::kFloat64, Op::kSum); }
TEST_P(Conformance, AllReduceSumsInt32) { AllReduceAll<int32_t>(DataType::kInt32, Op::kSum); }
TEST_P(Conformance, AllReduceSumsInt64) { AllReduceAll<int64_t>(DataType::kInt64, Op::kSum); }
TEST_P(Conformance, AllReduceSumsUint8) { AllReduceAll<uint8_t>(DataType::kUint8, Op::kSum); }
TEST_P(Conformance, AllReduceComputesTheMinimum) {
  AllReduceAll<float>(DataType::kFloat32, Op::kMin);
}
TEST_P(Conformance, AllReduceComputesTheMaximum) {
  AllReduceAll<int64_t>(DataType::kInt64, Op::kMax);
}

TEST_P(Conformance, ReduceScatterReducesEachRanksPart) {
  Run([&](Group& group) {
    for (const size_t count : Counts(world())) {
      WithBothMemories<float>(group, count, [&](float* data) {
        Fill(group, data, count);
        group.Run({.operation = Operation::kReduceScatter, .output = data, .count = count}, Soon());
        const Range own = Part(count, world(), group.rank());
        EXPECT_EQ(CountWrong(data, own, Op::kSum, world()), 0u) << count << " elements";
      });
    }
  });
}

TEST_P(Conformance, AllGatherSendsEveryPartToAllRanks) {
  Run([&](Group& group) {
    for (const size_t count : Counts(world())) {
      WithBothMemories<int64_t>(group, count, [&](int64_t* data) {
        std::fill(data, data + count, int64_t{-1});
        const Range own = Part(count, world(), group.rank());
        for (size_t i = own.begin; i < own.end; ++i) data[i] = static_cast<int64_t>(i * 3);
        group.AllGather(data, count, DataType::kInt64, Soon());
        size_t wrong = 0;
        for (size_t i = 0; i < count; ++i) wrong += data[i] != static_cast<int64_t>(i * 3) ? 1 : 0;
        EXPECT_EQ(wrong, 0u) << count << " elements";
      });
    }
  });
}

TEST_P(Conformance, BroadcastCopiesFromEveryRoot) {
  Run([&](Group& group) {
    for (int root = 0; root < world(); ++root) {
      for (const size_t bytes : Counts(world())) {
        WithBothMemories<uint8_t>(group, bytes, [&](uint8_t* data) {
          Fill(group, data, bytes);
          group.Broadcast(data, bytes, root, Soon());
          size_t wrong = 0;
          for (size_t i = 0; i < bytes; ++i) wrong += data[i] != Value<uint8_t>(root, i) ? 1 : 0;
          EXPECT_EQ(wrong, 0u) << bytes << " bytes from rank " << root;
        });
      }
    }
  });
}

TEST_P(Conformance, BarrierBlocksUntilTheLastRankArrives) {
  std::atomic<int> came{0};
  Run([&](Group& group) {
    for (int round = 1; round <= 50; ++round) {
      came.fetch_add(1);
      group.Barrier(Soon());
      EXPECT_GE(came.load(), round * world());
      group.Barrier(Soon());
    }
  });
}

// Sums of these numbers depend on the order, so only a fixed order gives the same bits on all
// ranks.
TEST_P(Conformance, AllRanksGetTheSameBits) {
  for (const size_t count : {1000U, 20000U, 400001U}) {
    std::mutex mutex;
    std::vector<std::vector<float>> results;
    Run([&](Group& group) {
      std::vector<float> data(count);
      for (size_t i = 0; i < count; ++i) {
        const auto mixed = (i * 2654435761U + static_cast<size_t>(group.rank()) * 40503U) % 100003U;
        data[i] = (static_cast<float>(mixed) - 50000.0F) * 1.37e-3F;
      }
      group.AllReduce(data.data(), count, DataType::kFloat32, Op::kSum, Soon());
      const std::lock_guard lock(mutex);
      results.push_back(std::move(data));
    });
    ASSERT_EQ(results.size(), static_cast<size_t>(world()));
    for (const auto& result : results) {
      EXPECT_EQ(std::memcmp(result.data(), results[0].data(), count * sizeof(float)), 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Wirings, Conformance,
                         ::testing::Combine(::testing::Values(Wiring::kThreads, Wiring::kShared,
                                                              Wiring::kTcp, Wiring::kTcp6,
                                                              Wiring::kTls, Wiring::kTlsPairs,
                                                              Wiring::kUcx, Wiring::kUcxPairs,
                                                              Wiring::kPairs, Wiring::kInterleaved),
                                            ::testing::Range(1, 6)),
                         [](const auto& info) {
                           return NameOf(std::get<0>(info.param)) +
                                  std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace hearth::collective
