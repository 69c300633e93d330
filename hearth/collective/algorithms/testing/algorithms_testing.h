// For tests: runs an algorithm on ranks that are threads of this process and communicate over
// socket pairs. Every algorithm runs at every size, also where the backend would choose another
// algorithm.
#pragma once

#include <gmock/gmock.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/base/thread.h"
#include "hearth/collective/algorithms/algorithms.h"
#include "hearth/collective/transport/tcp_transport.h"

namespace hearth::collective {

// Runs `body` once per rank; a rank that returns closes its connections. Throws the error of a rank
// that failed.
inline void RunExchanges(int ranks, const std::function<void(const Exchange&)>& body) {
  const auto world = static_cast<size_t>(ranks);
  std::vector<std::vector<std::unique_ptr<PeerStream>>> streams(world);
  std::vector<Peer> peers;
  for (size_t a = 0; a < world; ++a) {
    peers.push_back({static_cast<int>(a), "here"});
    streams[a].resize(world);
    for (size_t b = 0; b < a; ++b) {
      auto [left, right] = Connection::Pair();
      streams[a][b] = MakePlainStream(std::move(left), peers[b]);
      streams[b][a] = MakePlainStream(std::move(right), peers[a]);
    }
  }
  std::vector<Thread> threads;
  for (size_t rank = 0; rank < world; ++rank) {
    threads.emplace_back("rank", [&, rank] {
      TcpTransport transport(std::move(streams[rank]), peers, static_cast<int>(rank),
                             std::make_shared<AbortSignal>());
      Plan plan;
      std::vector<std::byte> scratch;
      body({transport, plan, scratch});
    });
  }
  for (Thread& thread : threads) thread.Join();
}

// All elements of `values`.
template <typename T>
Buffer BufferOf(std::vector<T>& values, DataType type = DataType::kFloat32) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size(), type};
}

// A rank's values: small integers, whose sums are exact.
inline std::vector<float> ValuesOfRank(int rank, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 97) + 100.0F * rank;
  return values;
}

// The sums of ValuesOfRank over all ranks.
inline std::vector<float> SumsOfRanks(int ranks, size_t count) {
  std::vector<float> sums(count);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<float> values = ValuesOfRank(rank, count);
    for (size_t i = 0; i < count; ++i) sums[i] += values[i];
  }
  return sums;
}

// No elements, fewer than ranks, as many as ranks, more, and enough for several chunks.
inline std::vector<size_t> CountsFor(int ranks) {
  const auto n = static_cast<size_t>(ranks);
  return {0, 1, n - 1, n, 2 * n + 1, 4097, 200003};
}

using AllReduceAlgorithm = void (*)(const Exchange&, Buffer, Op, Deadline);

inline void ExpectExactSums(int ranks, AllReduceAlgorithm reduce) {
  for (const size_t count : CountsFor(ranks)) {
    const std::vector<float> sums = SumsOfRanks(ranks, count);
    RunExchanges(ranks, [&](const Exchange& exchange) {
      std::vector<float> data = ValuesOfRank(exchange.transport.self(), count);
      reduce(exchange, BufferOf(data), Op::kSum, Soon());
      EXPECT_EQ(data, sums) << count << " elements";
    });
  }
}

// Sums of values of very different sizes, which depend on the order of the additions.
inline void ExpectTheSameBits(int ranks, AllReduceAlgorithm reduce) {
  constexpr size_t kCount = 1003;
  std::vector<std::vector<float>> results(static_cast<size_t>(ranks));
  RunExchanges(ranks, [&](const Exchange& exchange) {
    const int self = exchange.transport.self();
    std::vector<float> data(kCount);
    for (size_t i = 0; i < kCount; ++i) {
      data[i] = 1.0F / static_cast<float>(3 + i * 7 + static_cast<size_t>(self) * 13);
      if ((i + static_cast<size_t>(self)) % 3 == 0) data[i] *= -1e6F;
    }
    reduce(exchange, BufferOf(data), Op::kSum, Soon());
    results[static_cast<size_t>(self)] = data;
  });
  for (const std::vector<float>& result : results) EXPECT_EQ(result, results.front());
}

inline void ExpectMinimumAndMaximum(int ranks, AllReduceAlgorithm reduce) {
  RunExchanges(ranks, [&](const Exchange& exchange) {
    const auto self = static_cast<float>(exchange.transport.self());
    std::vector<float> least = {self, -self}, largest = least;
    reduce(exchange, BufferOf(least), Op::kMin, Soon());
    reduce(exchange, BufferOf(largest), Op::kMax, Soon());
    EXPECT_EQ(least, (std::vector<float>{0, -static_cast<float>(ranks - 1)}));
    EXPECT_EQ(largest, (std::vector<float>{static_cast<float>(ranks - 1), 0}));
  });
}

// Runs `algorithm` on rank 0 of two, while the other rank leaves without calling it.
inline void ExpectTheRankThatLeftIsNamed(const std::function<void(const Exchange&)>& algorithm) {
  RunExchanges(2, [&](const Exchange& exchange) {
    if (exchange.transport.self() == 1) return;
    const Error error = Thrown([&] { algorithm(exchange); });
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("rank 1 on host here"));
  });
}

}  // namespace hearth::collective
