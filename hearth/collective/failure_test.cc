// Tests that failed operations end soon and name the rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/thread.h"
#include "hearth/collective/testing/failure_testing.h"
#include "hearth/collective/testing/ranks_testing.h"

namespace hearth::collective {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

void Sum(Group& group, std::vector<float>& data, double timeout_s) {
  group.AllReduce(data.data(), data.size(), DataType::kFloat32, Op::kSum,
                  Deadline::After(timeout_s));
}

// Blocks a rank until the test opens the gate.
class Gate {
 public:
  void Open() { promise_.set_value(); }
  void Wait() { future_.wait_for(std::chrono::duration<double>(kLong)); }

 private:
  std::promise<void> promise_;
  std::shared_future<void> future_ = promise_.get_future().share();
};

class Failures : public WiringTest {
 protected:
  std::string HostOfRank1() const {
    return GetParam() == Wiring::kThreads ? "this process" : "host1";
  }
};

TEST_P(Failures, APeerThatLeavesFailsTheOperationAndIsNamed) {
  RunGroups(GetParam(), 2, [&](Group& group) {
    if (group.rank() == 1) return;
    std::vector<float> data(1 << 20);
    const Outcome outcome = OutcomeOf([&] { Sum(group, data, kLong); });
    EXPECT_EQ(outcome.code, ErrorCode::kUnavailable);
    EXPECT_THAT(outcome.message,
                AllOf(HasSubstr("all-reduce of 4194304 bytes (float32, sum): rank 1 on host " +
                                HostOfRank1())));
    EXPECT_LT(outcome.seconds, kLong / 2);
  });
}

TEST_P(Failures, AStuckPeerIsNamedAtTheDeadline) {
  Gate gate;
  RunGroups(GetParam(), 2, [&](Group& group) {
    if (group.rank() == 1) return gate.Wait();
    std::vector<float> data(1000);
    const Outcome outcome = OutcomeOf([&] { Sum(group, data, 0.2); });
    gate.Open();
    EXPECT_EQ(outcome.code, ErrorCode::kDeadlineExceeded);
    EXPECT_THAT(outcome.message, AllOf(HasSubstr("all-reduce of 4000 bytes"),
                                       HasSubstr("rank 1 on host " + HostOfRank1())));
    EXPECT_GE(outcome.seconds, 0.2);
    EXPECT_LT(outcome.seconds, kLong / 2);
  });
}

TEST_P(Failures, AbortFromAnotherThreadEndsTheWaitWithItsReason) {
  Gate gate;
  RunGroups(GetParam(), 2, [&](Group& group) {
    if (group.rank() == 1) return gate.Wait();
    std::promise<void> begun;
    Thread aborter("aborter", [&] {
      begun.get_future().wait();
      group.Abort("rank 1 on host h failed: layer conv1");
    });
    const Outcome outcome = OutcomeOf([&] {
      begun.set_value();
      group.Barrier(Deadline::After(kLong));
    });
    aborter.Join();
    gate.Open();
    EXPECT_EQ(outcome.code, ErrorCode::kAborted);
    EXPECT_EQ(outcome.message, "rank 1 on host h failed: layer conv1");
    EXPECT_LT(outcome.seconds, kLong / 2);
  });
}

TEST_P(Failures, AnErrorIsFinalForTheGroup) {
  Gate gate;
  RunGroups(GetParam(), 2, [&](Group& group) {
    if (group.rank() == 1) return gate.Wait();
    const Outcome first = OutcomeOf([&] { group.Barrier(Deadline::After(0.05)); });
    std::vector<float> data(10);
    const Outcome second = OutcomeOf([&] { Sum(group, data, kLong); });
    gate.Open();
    EXPECT_EQ(second.code, ErrorCode::kDeadlineExceeded);
    EXPECT_EQ(second.message, first.message);
    EXPECT_LT(second.seconds, kLong / 2);
  });
}

TEST_P(Failures, ARankThatTimedOutFailsItsPeers) {
  RunGroups(GetParam(), 2, [&](Group& group) {
    std::vector<float> data(10);
    if (group.rank() == 1) {
      group.Abort("enough");
      EXPECT_EQ(OutcomeOf([&] { Sum(group, data, kLong); }).code, ErrorCode::kAborted);
    } else {
      const Outcome outcome = OutcomeOf([&] { Sum(group, data, kLong); });
      EXPECT_EQ(outcome.code, ErrorCode::kUnavailable);
      EXPECT_LT(outcome.seconds, kLong / 2);
    }
  });
}

TEST_P(Failures, BroadcastRejectsAnInvalidRoot) {
  RunGroups(GetParam(), 2, [&](Group& group) {
    char byte = 0;
    const Outcome outcome = OutcomeOf([&] { group.Broadcast(&byte, 1, 2, Deadline::After(1)); });
    EXPECT_EQ(outcome.code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(outcome.message, HasSubstr("ranks 0 to 1"));
    group.Barrier(Deadline::After(kLong));  // the group is still usable
  });
}

INSTANTIATE_TEST_SUITE_P(Wirings, Failures,
                         ::testing::Values(Wiring::kThreads, Wiring::kShared, Wiring::kTcp,
                                           Wiring::kTcp6, Wiring::kTls, Wiring::kUcx),
                         [](const auto& info) { return NameOf(info.param); });

// Runs two ranks that make different calls; returns the error of the rank that detects the mismatch
// first.
std::string ErrorOfMismatch(Wiring wiring, const std::function<void(Group&)>& call) {
  std::mutex mutex;
  std::string message;
  RunGroups(wiring, 2, [&](Group& group) {
    const Outcome outcome = OutcomeOf([&] { call(group); });
    // The rank that detects the mismatch first then leaves, so the other rank may get either error.
    EXPECT_TRUE(outcome.code == ErrorCode::kInvalidArgument ||
                outcome.code == ErrorCode::kUnavailable)
        << outcome.message;
    EXPECT_LT(outcome.seconds, kLong / 2);
    const std::lock_guard lock(mutex);
    if (outcome.code == ErrorCode::kInvalidArgument) message = outcome.message;
  });
  return message;
}

class Disagreements : public WiringTest {};

TEST_P(Disagreements, InSizeAreReported) {
  const auto sum = [](Group& group) {
    std::vector<float> data(group.rank() == 0 ? 100 : 50);
    Sum(group, data, kLong);
  };
  EXPECT_THAT(ErrorOfMismatch(GetParam(), sum),
              ::testing::ContainsRegex("all-reduce of (400|200) bytes .*: rank (0|1) .* called "
                                       "all-reduce of (400|200) bytes"));
}

TEST_P(Disagreements, InOperationAreReported) {
  const auto one_of_two = [](Group& group) {
    // The data does not fit in the socket buffers, because a root that could send everything would
    // return without an error.
    std::vector<float> data(4'000'000);
    if (group.rank() == 1) {
      return group.Broadcast(data.data(), data.size() * sizeof(float), 1, Deadline::After(kLong));
    }
    Sum(group, data, kLong);
  };
  EXPECT_THAT(ErrorOfMismatch(GetParam(), one_of_two), HasSubstr("in the same order"));
}

INSTANTIATE_TEST_SUITE_P(Wirings, Disagreements,
                         ::testing::Values(Wiring::kThreads, Wiring::kShared, Wiring::kTcp,
                                           Wiring::kTls, Wiring::kUcx),
                         [](const auto& info) { return NameOf(info.param); });

// The different requests of two ranks, so only the comparison of the calls can end their waits.
struct Disagreement {
  const char* what;
  Request first;
  Request second;
  const char* said;  // part of the error that either rank reports
};

std::vector<Disagreement> AllDisagreements() {
  constexpr auto kReduce = Operation::kAllReduce;
  const Request sum = {.operation = kReduce, .count = 100};
  Request mean = sum, doubles, narrow = sum, one = sum, two = sum;
  mean.op = Op::kMean;
  doubles = {.operation = kReduce, .count = 50, .type = DataType::kFloat64};
  narrow.wire = Wire::kBfloat16;
  one.name = "conv1";
  two.name = "conv2";
  const Request empty = {.operation = kReduce};
  const Request from0 = {.operation = Operation::kBroadcast, .count = 8, .peer = 0};
  const Request from1 = {.operation = Operation::kBroadcast, .count = 8, .peer = 1};
  const Request parts = {.operation = Operation::kAllGather, .count = 4, .counts = {1, 3}};
  const Request others = {.operation = Operation::kAllGather, .count = 4, .counts = {2, 2}};
  return {{"op", sum, mean, "(float32, mean)"},
          {"type", sum, doubles, "(float64, sum)"},
          {"wire", sum, narrow, "bfloat16 on the wire"},
          {"name", one, two, "all-reduce 'conv2' of 400 bytes"},
          {"nothing", empty, {}, "barrier"},
          {"root, each waiting for the other", from1, from0, "from rank 0"},
          {"parts", parts, others, "digest"}};
}

TEST_P(Disagreements, InAnyOtherFieldAreReportedAtOnce) {
  for (const Disagreement& each : AllDisagreements()) {
    const auto call = [&](Group& group) {
      Request request = group.rank() == 0 ? each.first : each.second;
      std::vector<std::byte> data(1000);
      request.output = data.data();
      group.Run(request, Deadline::After(kLong));
      group.Barrier(Deadline::After(kLong));
    };
    EXPECT_THAT(ErrorOfMismatch(GetParam(), call),
                AllOf(HasSubstr("in the same order"), HasSubstr(each.said)))
        << each.what;
  }
}

TEST(FailuresOfGroups, ARankOneOperationAheadOverTcpIsReported) {
  const auto one_or_two = [](Group& group) {
    std::vector<float> nothing;
    std::vector<float> data(10);
    if (group.rank() == 1) Sum(group, nothing, kLong);
    Sum(group, data, kLong);
    group.Barrier(Deadline::After(kLong));
  };
  EXPECT_THAT(ErrorOfMismatch(Wiring::kTcp, one_or_two), HasSubstr("in the same order"));
}

TEST(FailuresOfGroups, ARendezvousFailureReachesAWaitingGroup) {
  const auto run = [] {
    RunGroups(Wiring::kShared, 3, [&](Group& group) {
      if (group.rank() == 1) Throw(ErrorCode::kDataLoss, "layer conv1: no weights");
      std::vector<float> data(10);
      const Outcome outcome = OutcomeOf([&] { Sum(group, data, kLong); });
      EXPECT_TRUE(outcome.code == ErrorCode::kAborted || outcome.code == ErrorCode::kUnavailable);
      EXPECT_LT(outcome.seconds, kLong / 2);
    });
  };
  EXPECT_EQ(OutcomeOf(run).message, "layer conv1: no weights");
}

}  // namespace
}  // namespace hearth::collective
