// Tests operations on GPU memory against the stand-ins for CUDA and NCCL. The tests need no GPU, so
// they do not cover errors of NCCL itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <tuple>
#include <vector>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/collective/bucket_reducer.h"
#include "hearth/collective/queue.h"
#include "hearth/collective/testing/device_testing.h"

namespace hearth::collective {
namespace {

class Devices : public ::testing::TestWithParam<std::tuple<Layout, int>> {
 protected:
  int world() const { return std::get<1>(GetParam()); }
  void Run(const std::function<void(Group&)>& body) {
    RunOnDevices(std::get<0>(GetParam()), world(), body);
  }
};

template <typename T>
std::vector<T> Values(int rank, size_t count) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<T>((i * 7 + static_cast<size_t>(rank) * 13) % 23);
  }
  return values;
}

// The reduction of all ranks' Values.
template <typename T>
std::vector<T> Combined(Op op, int world, size_t count) {
  std::vector<T> all = Values<T>(0, count);
  for (int rank = 1; rank < world; ++rank) {
    const std::vector<T> own = Values<T>(rank, count);
    for (size_t i = 0; i < count; ++i) {
      if (op == Op::kMin) all[i] = std::min(all[i], own[i]);
      if (op == Op::kMax) all[i] = std::max(all[i], own[i]);
      if (op == Op::kSum || op == Op::kMean) all[i] = static_cast<T>(all[i] + own[i]);
    }
  }
  if (op == Op::kMean) {
    for (T& value : all) value = static_cast<T>(value / static_cast<T>(world));
  }
  return all;
}

Request OnDevice(Operation operation, void* output, size_t count) {
  return {.operation = operation, .output = output, .count = count, .memory = Memory::kDevice};
}

TEST_P(Devices, AllReduceCombinesByEachOp) {
  Run([&](Group& group) {
    for (const Op op : {Op::kSum, Op::kMin, Op::kMax, Op::kMean}) {
      const DeviceArray<double> data(Values<double>(group.rank(), 1001));
      Request request = OnDevice(Operation::kAllReduce, data.get(), data.size());
      request.type = DataType::kFloat64;
      request.op = op;
      group.Run(request, Soon());
      EXPECT_EQ(data.Values(), Combined<double>(op, world(), data.size())) << NameOf(op);
    }
  });
}

TEST_P(Devices, AllReduceDoesNotChangeASeparateInput) {
  Run([&](Group& group) {
    const std::vector<int64_t> given = Values<int64_t>(group.rank(), 100);
    const DeviceArray<int64_t> input(given);
    const DeviceArray<int64_t> output(std::vector<int64_t>(100));
    Request request = OnDevice(Operation::kAllReduce, output.get(), output.size());
    request.input = input.get();
    request.type = DataType::kInt64;
    group.Run(request, Soon());
    EXPECT_EQ(output.Values(), Combined<int64_t>(Op::kSum, world(), output.size()));
    EXPECT_EQ(input.Values(), given);
  });
}

// Equal and unequal parts, in place and out of place.
TEST_P(Devices, ReduceScatterReducesEachRanksPart) {
  Run([&](Group& group) {
    for (const size_t count : {size_t{120}, size_t{121}, size_t{1}}) {
      const Range own = Part(count, world(), group.rank());
      const std::vector<float> all = Combined<float>(Op::kSum, world(), count);
      const std::vector<float> expected(all.begin() + static_cast<ptrdiff_t>(own.begin),
                                        all.begin() + static_cast<ptrdiff_t>(own.end));
      const DeviceArray<float> data(Values<float>(group.rank(), count));
      const DeviceArray<float> part(std::vector<float>(own.size()));
      Request request = OnDevice(Operation::kReduceScatter, part.get(), count);
      request.input = data.get();
      group.Run(request, Soon());
      EXPECT_EQ(part.Values(), expected) << count;
      group.Run(OnDevice(Operation::kReduceScatter, data.get(), count), Soon());
      const auto there = data.Host().subspan(own.begin, own.size());
      EXPECT_EQ(std::vector<float>(there.begin(), there.end()), expected) << count << " in place";
    }
  });
}

TEST_P(Devices, AllGatherSendsEqualAndUnequalParts) {
  Run([&](Group& group) {
    for (const bool equal : {true, false}) {
      Request request = {.operation = Operation::kAllGather, .memory = Memory::kDevice};
      std::vector<int32_t> expected;
      std::vector<int32_t> own;
      for (int rank = 0; rank < world(); ++rank) {
        const size_t count = equal ? 5 : static_cast<size_t>(rank);
        const std::vector<int32_t> part(count, rank + 1);
        expected.insert(expected.end(), part.begin(), part.end());
        if (rank == group.rank()) own = part;
        request.counts.push_back(count);
      }
      const DeviceArray<int32_t> input(own);
      const DeviceArray<int32_t> output(std::vector<int32_t>(expected.size()));
      request.type = DataType::kInt32;
      request.input = input.get();
      request.output = output.get();
      request.count = expected.size();
      group.Run(request, Soon());
      EXPECT_EQ(output.Values(), expected) << (equal ? "equal" : "unequal");
    }
  });
}

TEST_P(Devices, AllToAllExchangesBlocks) {
  Run([&](Group& group) {
    std::vector<int32_t> given;
    std::vector<int32_t> expected;
    for (int rank = 0; rank < world(); ++rank) {
      for (int i = 0; i < 3; ++i) {
        given.push_back(group.rank() * 100 + rank);
        expected.push_back(rank * 100 + group.rank());
      }
    }
    const DeviceArray<int32_t> input(given);
    const DeviceArray<int32_t> output(std::vector<int32_t>(given.size()));
    Request request = OnDevice(Operation::kAllToAll, output.get(), output.size());
    request.input = input.get();
    request.type = DataType::kInt32;
    group.Run(request, Soon());
    EXPECT_EQ(output.Values(), expected);
  });
}

TEST_P(Devices, BroadcastCopiesFromTheRoot) {
  Run([&](Group& group) {
    for (int root = 0; root < world(); ++root) {
      const DeviceArray<uint8_t> data(Values<uint8_t>(group.rank(), 77));
      Request request = OnDevice(Operation::kBroadcast, data.get(), data.size());
      request.type = DataType::kUint8;
      request.peer = root;
      group.Run(request, Soon());
      EXPECT_EQ(data.Values(), Values<uint8_t>(root, 77));
    }
  });
}

TEST_P(Devices, SendAndReceiveExchangeMessages) {
  Run([&](Group& group) {
    if (group.rank() > 1) return;
    const DeviceArray<float> data(Values<float>(group.rank(), 50));
    Request request = OnDevice(group.rank() == 0 ? Operation::kSend : Operation::kReceive,
                               data.get(), data.size());
    request.peer = 1 - group.rank();
    group.Run(request, Soon());
    EXPECT_EQ(data.Values(), Values<float>(0, 50));
  });
}

TEST_P(Devices, HostMemoryAndEmptyRequestsStillWork) {
  Run([&](Group& group) {
    std::vector<float> data = Values<float>(group.rank(), 100);
    group.AllReduce(data.data(), data.size(), DataType::kFloat32, Op::kSum, Soon());
    EXPECT_EQ(data, Combined<float>(Op::kSum, world(), 100));
    group.Run(OnDevice(Operation::kAllReduce, nullptr, 0), Soon());
    group.Barrier(Soon());
  });
}

TEST_P(Devices, QueueHandlesCompleteInOrder) {
  Run([&](Group& group) {
    const DeviceArray<float> first(Values<float>(group.rank(), 1000));
    const DeviceArray<float> second(Values<float>(group.rank(), 10));
    Queue queue(group);
    const Handle one = queue.Submit(OnDevice(Operation::kAllReduce, first.get(), first.size()));
    const Handle two = queue.Submit(OnDevice(Operation::kAllReduce, second.get(), second.size()));
    two.Wait(Soon());
    EXPECT_TRUE(one.done());
    EXPECT_EQ(first.Values(), Combined<float>(Op::kSum, world(), first.size()));
    EXPECT_EQ(second.Values(), Combined<float>(Op::kSum, world(), second.size()));
  });
}

TEST_P(Devices, GradientBucketsAreSummedInPlace) {
  Run([&](Group& group) {
    const std::vector<size_t> pieces = {100, 3000, 17};
    const DeviceArray<float> gradients(Values<float>(group.rank(), 3117));
    BucketReducer reducer(group, gradients.get(), pieces,
                          {.bucket_bytes = 4000, .memory = Memory::kDevice});
    for (size_t piece = pieces.size(); piece-- > 0;) reducer.Ready(piece);
    reducer.Wait(Soon());
    EXPECT_EQ(gradients.Values(), Combined<float>(Op::kSum, world(), gradients.size()));
  });
}

INSTANTIATE_TEST_SUITE_P(Layout, Devices,
                         ::testing::Combine(::testing::Values(Layout::kOneHost, Layout::kHosts,
                                                              Layout::kPairs),
                                            ::testing::Values(2, 3, 4)),
                         [](const auto& info) {
                           return NameOf(std::get<0>(info.param)) +
                                  std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace hearth::collective
