// Tests the options of a Request that Group's shorthands do not use, on every transport and 1 to 8
// ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <mutex>
#include <tuple>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/testing/deadline_testing.h"
#include "hearth/collective/operation/half.h"
#include "hearth/collective/queue.h"
#include "hearth/collective/testing/ranks_testing.h"

namespace hearth::collective {
namespace {

using ::testing::HasSubstr;

class Requests : public ::testing::TestWithParam<std::tuple<Wiring, int>> {
 protected:
  int world() const { return std::get<1>(GetParam()); }
  size_t ranks() const { return static_cast<size_t>(world()); }
  void Run(const std::function<void(Group&)>& body) {
    RunGroups(std::get<0>(GetParam()), world(), body, 60);
  }

  // All-reduces a vector of each rank, out of place and on unaligned memory.
  template <typename T>
  void Reduce(const Request& how, const std::function<std::vector<T>(int)>& of,
              const std::function<void(const std::vector<T>&)>& check) {
    Run([&](Group& group) {
      const std::vector<T> input = of(group.rank());
      const size_t bytes = input.size() * sizeof(T);
      std::vector<std::byte> odd(2 * bytes + 1);
      // Copies by copy_n instead of memcpy, because the data of an empty vector may be null.
      const auto* given = reinterpret_cast<const std::byte*>(input.data());
      std::copy_n(given, bytes, odd.begin() + 1);
      Request request = how;
      request.input = odd.data() + 1;
      request.output = odd.data() + 1 + bytes;
      request.count = input.size();
      group.Run(request, Soon());
      EXPECT_TRUE(std::equal(given, given + bytes, odd.begin() + 1)) << "the input changed";
      std::vector<T> output(input.size());
      std::copy_n(odd.data() + 1 + bytes, bytes, reinterpret_cast<std::byte*>(output.data()));
      check(output);
    });
  }
};

TEST_P(Requests, MeansOfEveryType) {
  const int n = world();
  const auto each = [&]<typename T>(DataType type, T) {
    const std::function<std::vector<T>(int)> of = [](int rank) {
      return std::vector<T>(7, static_cast<T>(rank * 2 + 1));
    };
    Reduce<T>({.operation = Operation::kAllReduce, .type = type, .op = Op::kMean}, of,
              [&](const std::vector<T>& result) {
                // 1 + 3 + 5 ... is n * n
                EXPECT_EQ(result, std::vector<T>(7, static_cast<T>(n))) << NameOf(type);
              });
  };
  each(DataType::kFloat32, float{});
  each(DataType::kFloat64, double{});
  each(DataType::kInt32, int32_t{});
  each(DataType::kInt64, int64_t{});
  each(DataType::kUint8, uint8_t{});
}

TEST_P(Requests, AMeanOfFloat16DoesNotOverflowThoughTheSumDoes) {
  const auto of = [](int) { return std::vector<uint16_t>(5, ToFloat16(60000).bits); };
  Request request = {.operation = Operation::kAllReduce, .type = DataType::kFloat16};
  Reduce<uint16_t>(request, of, [&](const std::vector<uint16_t>& result) {
    EXPECT_EQ(std::isinf(ToFloat(Float16{result[0]})), world() > 1);
  });
  request.op = Op::kMean;
  Reduce<uint16_t>(request, of, [&](const std::vector<uint16_t>& result) {
    EXPECT_NEAR(ToFloat(Float16{result[0]}), 60000, 200);
  });
}

TEST_P(Requests, NanAndInfinityOfOneRankReachAllRanks) {
  const float inf = std::numeric_limits<float>::infinity();
  const auto of = [&](int rank) {
    std::vector<float> data = {1, 1, 1};
    if (rank == world() - 1) data = {std::nanf(""), inf, -inf};
    return data;
  };
  for (const Op op : {Op::kSum, Op::kMin, Op::kMax, Op::kMean}) {
    Reduce<float>({.operation = Operation::kAllReduce, .op = op}, of,
                  [&](const std::vector<float>& result) {
                    EXPECT_TRUE(std::isnan(result[0])) << NameOf(op);
                    const bool alone = world() == 1;
                    EXPECT_EQ(result[1], op == Op::kMin && !alone ? 1 : inf) << NameOf(op);
                    EXPECT_EQ(result[2], op == Op::kMax && !alone ? 1 : -inf) << NameOf(op);
                  });
  }
}

TEST_P(Requests, SixteenBitSumsAreCloseAndEqualOnAllRanks) {
  std::mutex mutex;
  for (const Wire wire : {Wire::kFloat16, Wire::kBfloat16}) {
    for (const size_t count : {size_t{0}, size_t{1}, ranks() + 1, size_t{600001}}) {
      std::vector<float> first;
      const auto of = [&](int rank) {
        std::vector<float> data(count);
        for (size_t i = 0; i < count; ++i) {
          data[i] = static_cast<float>(i % 1009) * 0.01F + static_cast<float>(rank);
        }
        return data;
      };
      const auto check = [&](const std::vector<float>& result) {
        const std::lock_guard lock(mutex);
        if (first.empty()) first = result;
        EXPECT_EQ(first, result);
        size_t wrong = 0;
        for (size_t i = 0; i < count; ++i) {
          const double exact =
              static_cast<double>(i % 1009) * 0.01 * world() + world() * (world() - 1) / 2.0;
          wrong += std::abs(result[i] - exact) > 0.01 * exact + 1e-3 ? 1 : 0;
        }
        EXPECT_EQ(wrong, 0U) << count;
      };
      Reduce<float>({.operation = Operation::kAllReduce, .wire = wire}, of, check);
    }
  }
}

TEST_P(Requests, ReduceScatterOutOfPlaceReturnsEachRanksPart) {
  Run([&](Group& group) {
    for (const size_t count : {size_t{1}, ranks() + 1, size_t{100003}}) {
      const std::vector<int64_t> input(count, group.rank() + 1);
      const size_t own = Part(count, world(), group.rank()).size();
      std::vector<int64_t> output(own + 1, -1);
      group.Run({.operation = Operation::kReduceScatter,
                 .input = input.data(),
                 .output = output.data(),
                 .count = count,
                 .type = DataType::kInt64},
                Soon());
      std::vector<int64_t> expected(own, int64_t{world()} * (world() + 1) / 2);
      expected.push_back(-1);
      EXPECT_EQ(output, expected) << count;
    }
  });
}

// Rank r has r * size elements: rank 0 has none.
TEST_P(Requests, UnequalPartsReachAll) {
  Run([&](Group& group) {
    for (const size_t size : {1U, 30011U}) {
      Request request = {.operation = Operation::kAllGather, .type = DataType::kInt32};
      std::vector<int32_t> expected;
      for (size_t r = 0; r < ranks(); ++r) {
        request.counts.push_back(r * size);
        expected.insert(expected.end(), r * size, static_cast<int32_t>(r));
      }
      const std::vector<int32_t> input(static_cast<size_t>(group.rank()) * size, group.rank());
      std::vector<int32_t> output(expected.size(), -1);
      request.input = input.data();
      request.output = output.data();
      request.count = expected.size();
      group.Run(request, Soon());
      EXPECT_EQ(output, expected);
    }
  });
}

TEST_P(Requests, AllToAllExchangesBlocks) {
  Run([&](Group& group) {
    for (const size_t block : {0U, 1U, 300007U}) {
      std::vector<int32_t> data(block * ranks());
      for (size_t i = 0; i < data.size(); ++i) {
        data[i] = group.rank() * 100 + static_cast<int32_t>(i / block);
      }
      std::vector<int32_t> expected(data.size());
      for (size_t i = 0; i < data.size(); ++i) {
        expected[i] = static_cast<int32_t>(i / block) * 100 + group.rank();
      }
      std::vector<int32_t> output(data.size());
      Request request = {.operation = Operation::kAllToAll, .type = DataType::kInt32};
      request.input = data.data();
      request.output = output.data();
      request.count = data.size();
      group.Run(request, Soon());
      EXPECT_EQ(output, expected) << block;
      request.input = nullptr;
      request.output = data.data();
      group.Run(request, Soon());
      EXPECT_EQ(data, expected) << block << " in place";
    }
  });
}

// Sends a message per rank around a ring, between collective operations.
TEST_P(Requests, MessagesAreExchangedBetweenPairs) {
  Run([&](Group& group) {
    for (const size_t count : {0U, 1U, 100003U}) {
      std::vector<float> token(count, 0);
      Request request = {.output = token.data(), .count = count, .name = "token"};
      const auto receive = [&] {
        request.operation = Operation::kReceive;
        request.peer = (group.rank() + world() - 1) % world();
        group.Run(request, Soon());
      };
      if (world() == 1) break;
      if (group.rank() > 0) receive();
      for (float& value : token) value += 1;
      request.operation = Operation::kSend;
      request.peer = (group.rank() + 1) % world();
      group.Run(request, Soon());
      if (group.rank() == 0) receive();
      const int hops = group.rank() == 0 ? world() : group.rank() + 1;
      EXPECT_EQ(token, std::vector<float>(count, static_cast<float>(hops)));
      group.Barrier(Soon());
    }
  });
}

TEST_P(Requests, ManyInFlightCompleteInOrder) {
  Run([&](Group& group) {
    constexpr int kMany = 40;
    std::vector<std::vector<int64_t>> data;
    std::vector<Handle> handles;
    Queue queue(group, 60);
    for (int i = 0; i < kMany; ++i) data.emplace_back(static_cast<size_t>(i * i * 10), i);
    for (int i = 0; i < kMany; ++i) {
      auto& mine = data[static_cast<size_t>(i)];
      handles.push_back(queue.Submit({.operation = Operation::kAllReduce,
                                      .output = mine.data(),
                                      .count = mine.size(),
                                      .type = DataType::kInt64,
                                      .name = "gradient " + std::to_string(i)}));
    }
    handles.back().Wait(Soon());
    for (int i = 0; i < kMany; ++i) {
      EXPECT_TRUE(handles[static_cast<size_t>(i)].done());
      handles[static_cast<size_t>(i)].Wait(Deadline::After(0));
      const auto& mine = data[static_cast<size_t>(i)];
      EXPECT_EQ(mine, std::vector<int64_t>(mine.size(), int64_t{i} * world()));
    }
  });
}

TEST_P(Requests, InvalidRequestsAreRejectedAndTheGroupStaysUsable) {
  Run([&](Group& group) {
    int64_t data[2] = {};
    const auto refused = [&](const Request& request) {
      try {
        group.Run(request, Soon());
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
        return error.message();
      }
      return std::string("accepted");
    };
    Request request = {.operation = Operation::kAllReduce, .output = data, .count = 1};
    request.type = DataType::kBool;
    request.op = Op::kMean;
    EXPECT_THAT(refused(request), HasSubstr("bools have no mean"));
    request.op = Op::kSum;
    request.wire = Wire::kFloat16;
    EXPECT_THAT(refused(request), HasSubstr("only sums and means of float32"));
    EXPECT_THAT(refused({.operation = Operation::kSend, .peer = group.rank()}),
                HasSubstr("with itself"));
    EXPECT_THAT(refused({.operation = Operation::kReceive, .peer = -1}), HasSubstr("has ranks 0"));
    EXPECT_THAT(refused({.operation = Operation::kAllGather, .count = 3, .counts = {2}}),
                HasSubstr("all-gather of 3 elements cannot have 1 parts with 2 elements"));
    if (world() > 1) {
      EXPECT_THAT(refused({.operation = Operation::kAllToAll, .count = 1}),
                  HasSubstr("cannot be divided"));
    }
    group.Barrier(Soon());
  });
}

INSTANTIATE_TEST_SUITE_P(Wirings, Requests,
                         ::testing::Combine(::testing::Values(Wiring::kThreads, Wiring::kShared,
                                                              Wiring::kTcp, Wiring::kTls,
                                                              Wiring::kPairs, Wiring::kInterleaved),
                                            ::testing::Values(1, 2, 3, 5, 8)),
                         [](const auto& info) {
                           return NameOf(std::get<0>(info.param)) +
                                  std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace hearth::collective
