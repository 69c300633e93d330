// Tests every algorithm at every size, including those that the backend would not choose; over
// socket pairs.
#include "hearth/collective/algorithms/algorithms.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "hearth/base/thread.h"
#include "hearth/collective/transport/tcp_transport.h"

namespace hearth::collective {
namespace {

using Algorithm = std::function<void(const Exchange&, Buffer, Deadline)>;

// Runs `algorithm` on all ranks; `data` has one buffer per rank.
void Execute(const Algorithm& algorithm, std::vector<std::vector<float>>& data) {
  const size_t world = data.size();
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
      const Buffer buffer = {reinterpret_cast<std::byte*>(data[rank].data()), data[rank].size(),
                             DataType::kFloat32};
      algorithm({transport, plan, scratch}, buffer, Deadline::After(30));
    });
  }
  for (Thread& thread : threads) thread.Join();
}

class Algorithms : public ::testing::TestWithParam<int> {
 protected:
  std::vector<size_t> Counts() const {
    const auto n = static_cast<size_t>(GetParam());
    return {0, 1, n - 1, n, 2 * n + 1, 4097, 100003};
  }

  std::vector<std::vector<float>> Data(size_t count) const {
    std::vector<std::vector<float>> data(static_cast<size_t>(GetParam()));
    for (size_t rank = 0; rank < data.size(); ++rank) {
      data[rank].resize(count);
      for (size_t i = 0; i < count; ++i) data[rank][i] = static_cast<float>(i % 97 + rank * 100);
    }
    return data;
  }

  float SumAt(size_t i) const {
    const int n = GetParam();
    const int sum = static_cast<int>(i % 97) * n + 100 * n * (n - 1) / 2;
    return static_cast<float>(sum);
  }

  void CheckAllReduce(void (*reduce)(const Exchange&, Buffer, Op, Deadline)) {
    for (const size_t count : Counts()) {
      auto data = Data(count);
      Execute([&](const Exchange& exchange, Buffer buffer,
                  Deadline deadline) { reduce(exchange, buffer, Op::kSum, deadline); },
              data);
      for (const auto& result : data) {
        size_t wrong = 0;
        for (size_t i = 0; i < count; ++i) wrong += result[i] != SumAt(i) ? 1 : 0;
        EXPECT_EQ(wrong, 0U) << count << " elements";
      }
    }
  }
};

TEST_P(Algorithms, DirectExchangeSums) { CheckAllReduce(&DirectAllReduce); }
TEST_P(Algorithms, HalvingDoublingSums) { CheckAllReduce(&HalvingDoublingAllReduce); }
TEST_P(Algorithms, RingSums) { CheckAllReduce(&RingAllReduce); }

TEST_P(Algorithms, TreeBroadcastReachesAllFromEveryRoot) {
  for (int root = 0; root < GetParam(); ++root) {
    auto data = Data(200001);
    const auto expected = data[static_cast<size_t>(root)];
    Execute([&](const Exchange& exchange, Buffer buffer,
                Deadline deadline) { TreeBroadcast(exchange, buffer, root, deadline); },
            data);
    for (const auto& result : data) EXPECT_EQ(result, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, Algorithms, ::testing::Range(1, 10));

}  // namespace
}  // namespace hearth::collective
