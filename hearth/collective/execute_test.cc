// Tests every operation after a rank has left, and errors that some transports could miss.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/collective/testing/ranks_testing.h"

namespace hearth::collective {
namespace {

using ::testing::HasSubstr;

constexpr double kVeryLong = 120;
// Much longer than the operations take, even on a busy machine, and much shorter than kVeryLong.
constexpr double kSoon = 60;

constexpr size_t kCount = 1 << 18;
// More elements than fit in the socket buffers and a mailbox, so that a send cannot complete
// without the receiver.
constexpr size_t kSentCount = 4 << 20;

std::vector<Request> EveryOperation(int left) {
  std::vector<Request> requests;
  for (const Operation operation :
       {Operation::kAllReduce, Operation::kReduceScatter, Operation::kAllGather,
        Operation::kBroadcast, Operation::kBarrier, Operation::kAllToAll, Operation::kSend,
        Operation::kReceive}) {
    Request request = {.operation = operation, .peer = left, .name = "conv1"};
    if (operation != Operation::kBarrier) request.count = kCount;
    if (operation == Operation::kSend) request.count = kSentCount;
    requests.push_back(request);
  }
  Request narrow = requests.front();
  narrow.wire = Wire::kBfloat16;
  requests.push_back(narrow);
  Request ragged = {.operation = Operation::kAllGather, .count = kCount};
  ragged.counts = {0, 0, 0, kCount};
  requests.push_back(ragged);
  return requests;
}

class RequestFailures : public WiringTest {};

// A rank that waits for the departed rank names it. A rank that waits for such a rank may name that
// rank instead.
TEST_P(RequestFailures, ARankThatLeftFailsEveryOperationAndIsNamed) {
  constexpr int kLeft = 3;
  for (const Request& each : EveryOperation(kLeft)) {
    std::mutex mutex;
    std::vector<std::string> messages;
    RunGroups(GetParam(), kLeft + 1, [&](Group& group) {
      if (group.rank() == kLeft) return;
      // send and receive involve only these two ranks
      const bool pair = each.operation == Operation::kSend || each.operation == Operation::kReceive;
      if (pair && group.rank() != 0) return;
      std::vector<float> data(each.count);
      Request request = each;
      request.output = data.data();
      const auto start = std::chrono::steady_clock::now();
      try {
        group.Run(request, Deadline::After(kVeryLong));
        group.Barrier(Deadline::After(kVeryLong));
        ADD_FAILURE() << "no error";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kUnavailable) << error.message();
        const std::lock_guard lock(mutex);
        messages.push_back(error.message());
      }
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::duration<double>(kSoon));
    });
    EXPECT_THAT(messages, ::testing::Contains(HasSubstr("rank 3 on host ")))
        << static_cast<int>(each.operation);
  }
}

// The last rank calls a different operation than the others.
TEST_P(RequestFailures, ARankInAnotherOperationIsReportedAtOnce) {
  for (const Request& each : EveryOperation(0)) {
    if (each.operation == Operation::kSend || each.operation == Operation::kReceive) continue;
    std::mutex mutex;
    std::vector<std::string> messages;
    RunGroups(GetParam(), 4, [&](Group& group) {
      std::vector<double> data(kCount);
      Request request = each;
      if (group.rank() == 3) {
        request = {.operation = Operation::kAllReduce, .count = 77, .type = DataType::kFloat64};
      }
      request.output = data.data();
      try {
        group.Run(request, Deadline::After(kVeryLong));
        group.Barrier(Deadline::After(kVeryLong));
        ADD_FAILURE() << "no error";
      } catch (const Error& error) {
        EXPECT_NE(error.code(), ErrorCode::kDeadlineExceeded) << error.message();
        const std::lock_guard lock(mutex);
        if (error.code() == ErrorCode::kInvalidArgument) messages.push_back(error.message());
      }
    });
    EXPECT_THAT(messages, ::testing::Contains(HasSubstr("all-reduce of 616 bytes (float64, sum)")))
        << static_cast<int>(each.operation);
  }
}

TEST_P(RequestFailures, TwoRanksThatSendFirstBothReceive) {
  RunGroups(GetParam(), 2, [](Group& group) {
    const int other = 1 - group.rank();
    for (int round = 0; round < 3; ++round) {
      const int64_t own = group.rank() * 10 + round;
      int64_t came = -1;
      Request request = {.operation = Operation::kSend, .count = 1, .type = DataType::kInt64};
      request.input = &own;
      request.peer = other;
      group.Run(request, Deadline::After(kVeryLong));
      request = {.operation = Operation::kReceive, .count = 1, .type = DataType::kInt64};
      request.output = &came;
      request.peer = other;
      group.Run(request, Deadline::After(kVeryLong));
      EXPECT_EQ(came, other * 10 + round);
    }
  });
}

TEST_P(RequestFailures, AReceiverThatExpectsAnotherSizeGetsAnError) {
  RunGroups(GetParam(), 2, [](Group& group) {
    std::vector<float> data(100);
    Request request = {.output = data.data(), .peer = 1 - group.rank()};
    request.operation = group.rank() == 0 ? Operation::kSend : Operation::kReceive;
    request.count = group.rank() == 0 ? 100 : 50;
    if (group.rank() == 0) return group.Run(request, Deadline::After(kVeryLong));
    try {
      group.Run(request, Deadline::After(kVeryLong));
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(error.message(), HasSubstr("rank 0 on host "));
      EXPECT_THAT(error.message(), HasSubstr("send of 400 bytes"));
    }
  });
}

TEST_P(RequestFailures, OutOfMemoryIsFinal) {
  std::vector<uint8_t> data(8);
  Request request = {.operation = Operation::kAllToAll, .output = data.data()};
  request.count = size_t{1} << 62;  // exceeds any address space, so the allocation fails at once
  request.type = DataType::kUint8;
  Request copied = request;
  copied.operation = Operation::kReduceScatter;
  const std::vector<uint8_t> input(8);
  copied.input = input.data();
  for (const Request& each : {request, copied}) {
    RunGroups(GetParam(), 2, [&](Group& group) {
      const Error error = Thrown([&] { group.Run(each, Deadline::After(kVeryLong)); });
      EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted) << error.message();
      const Error next = Thrown([&] { group.Barrier(Deadline::After(kVeryLong)); });
      EXPECT_EQ(next.message(), error.message());
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Wirings, RequestFailures,
                         ::testing::Values(Wiring::kThreads, Wiring::kShared, Wiring::kTcp,
                                           Wiring::kTls, Wiring::kUcx, Wiring::kUcxPairs,
                                           Wiring::kPairs, Wiring::kInterleaved),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace hearth::collective
