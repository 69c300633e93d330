// Tests that failed operations on GPU memory end soon and name the rank. Runs against the stand-ins
// for CUDA and NCCL.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/thread.h"
#include "hearth/collective/device/cuda_api.h"
#include "hearth/collective/queue.h"
#include "hearth/collective/testing/device_testing.h"
#include "hearth/collective/testing/failure_testing.h"

namespace hearth::collective {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kNcclInternalError = 3;

Request DeviceSum(const DeviceArray<float>& data, const std::string& name = "conv1") {
  return {.operation = Operation::kAllReduce,
          .output = data.get(),
          .count = data.size(),
          .memory = Memory::kDevice,
          .name = name};
}

class DeviceFailures : public ::testing::TestWithParam<Layout> {
 protected:
  ~DeviceFailures() override { StandIn::Get().heal(); }

  void Run(const std::function<void(Group&)>& body) { RunOnDevices(GetParam(), 2, body); }
};

TEST_P(DeviceFailures, ARankThatHasLeftIsNamed) {
  Run([](Group& group) {
    if (group.rank() == 1) return;
    const DeviceArray<float> data(std::vector<float>(100));
    const Outcome outcome = OutcomeOf([&] { group.Run(DeviceSum(data), Deadline::After(kLong)); });
    EXPECT_EQ(outcome.code, ErrorCode::kUnavailable);
    EXPECT_THAT(outcome.message,
                AllOf(HasSubstr("all-reduce 'conv1' of 400 bytes (float32, sum, on GPUs): rank 1 "
                                "on host host1")));
    EXPECT_LT(outcome.seconds, kLong / 2);
  });
}

TEST_P(DeviceFailures, ARankThatIsLateIsNamed) {
  std::promise<void> over;
  Run([&](Group& group) {
    if (group.rank() == 1) return over.get_future().wait();
    const DeviceArray<float> data(std::vector<float>(100));
    const Outcome outcome = OutcomeOf([&] { group.Run(DeviceSum(data), Deadline::After(0.2)); });
    over.set_value();
    EXPECT_EQ(outcome.code, ErrorCode::kDeadlineExceeded);
    EXPECT_THAT(outcome.message, AllOf(HasSubstr("on GPUs"), HasSubstr("rank 1 on host host1")));
  });
}

TEST_P(DeviceFailures, AMismatchedCallIsReportedWithBothCalls) {
  Run([](Group& group) {
    const DeviceArray<float> data(std::vector<float>(100));
    const Request request = DeviceSum(data, group.rank() == 0 ? "conv1" : "conv2");
    const Outcome outcome = OutcomeOf([&] { group.Run(request, Deadline::After(kLong)); });
    if (outcome.code == ErrorCode::kUnavailable) return;  // the other rank saw the mismatch first
    EXPECT_EQ(outcome.code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(outcome.message, AllOf(HasSubstr("'conv1'"), HasSubstr("'conv2'")));
  });
}

TEST_P(DeviceFailures, HostMemoryOnOneRankIsReported) {
  std::mutex mutex;
  std::string message;
  Run([&](Group& group) {
    const DeviceArray<float> data(std::vector<float>(100));
    std::vector<float> own(100);
    Request request = DeviceSum(data);
    if (group.rank() == 1) {
      request.output = own.data();
      request.memory = Memory::kHost;
    }
    const Outcome outcome = OutcomeOf([&] { group.Run(request, Deadline::After(kLong)); });
    EXPECT_LT(outcome.seconds, kLong / 2);
    const std::lock_guard lock(mutex);
    if (outcome.code == ErrorCode::kInvalidArgument) message = outcome.message;
  });
  EXPECT_THAT(message, AllOf(HasSubstr("on GPUs"), HasSubstr("in the same order")));
}

// A kernel that hangs must not block the caller or its memory, neither on its own rank nor on a
// rank that waits for it.
TEST_P(DeviceFailures, AKernelThatHangsEndsAtTheDeadline) {
  StandIn::Get().hang(1);
  Run([](Group& group) {
    const DeviceArray<float> data(std::vector<float>(100, 1));
    const Outcome outcome = OutcomeOf([&] { group.Run(DeviceSum(data), Deadline::After(0.5)); });
    EXPECT_THAT(outcome.code,
                AnyOf(ErrorCode::kDeadlineExceeded, ErrorCode::kUnavailable, ErrorCode::kAborted));
    EXPECT_THAT(outcome.message, Not(HasSubstr("nothing was thrown")));
    EXPECT_LT(outcome.seconds, kLong / 2);
    EXPECT_EQ(data.Values(), std::vector<float>(100, 1)) << "nothing was half summed";
    EXPECT_EQ(OutcomeOf([&] { group.Barrier(Deadline::After(kLong)); }).message, outcome.message)
        << "a failure is final";
  });
}

TEST_P(DeviceFailures, ARankLostDuringKernelsIsNamedSoon) {
  StandIn::Get().hang(1);
  Run([](Group& group) {
    const DeviceArray<float> data(std::vector<float>(100));
    const double limit = group.rank() == 1 ? 0.3 : kLong;
    const Outcome outcome = OutcomeOf([&] { group.Run(DeviceSum(data), Deadline::After(limit)); });
    if (group.rank() == 1) return;
    EXPECT_EQ(outcome.code, ErrorCode::kUnavailable);
    EXPECT_THAT(outcome.message, AllOf(HasSubstr("'conv1'"), HasSubstr("rank 1 on host host1"),
                                       HasSubstr("left the group")));
    EXPECT_LT(outcome.seconds, kLong / 4);
  });
}

TEST_P(DeviceFailures, AnAsynchronousNcclErrorIsReported) {
  StandIn::Get().hang(0);
  Run([](Group& group) {
    const DeviceArray<float> data(std::vector<float>(100));
    Thread breaker("breaker", [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(150));  // the kernels have started
      if (group.rank() == 0) StandIn::Get().break_down(0, kNcclInternalError);
    });
    const Outcome outcome = OutcomeOf([&] { group.Run(DeviceSum(data), Deadline::After(kLong)); });
    breaker.Join();
    EXPECT_EQ(outcome.code, ErrorCode::kUnavailable);
    if (group.rank() == 0) {
      EXPECT_THAT(outcome.message, HasSubstr("NCCL: internal error: injected by the test"));
    }
    EXPECT_LT(outcome.seconds, kLong / 4);
  });
}

TEST_P(DeviceFailures, ACallRejectedByNcclIsReportedAndFailsThePeers) {
  Run([](Group& group) {
    const DeviceArray<float> data(std::vector<float>(100));
    if (group.rank() == 1) StandIn::Get().refuse(1, kNcclInternalError);
    const Outcome outcome = OutcomeOf([&] { group.Run(DeviceSum(data), Deadline::After(kLong)); });
    EXPECT_EQ(outcome.code, ErrorCode::kUnavailable);
    EXPECT_THAT(outcome.message,
                HasSubstr(group.rank() == 1 ? "NCCL: internal error" : "rank 1 on host host1"));
    EXPECT_LT(outcome.seconds, kLong / 4);
  });
}

TEST_P(DeviceFailures, AnAbortEndsAKernelWithItsReason) {
  StandIn::Get().hang(0);
  std::promise<void> over;
  Run([&](Group& group) {
    const DeviceArray<float> data(std::vector<float>(100));
    if (group.rank() == 1) {
      OutcomeOf([&] { group.Run(DeviceSum(data), Deadline::After(kLong)); });
      return;
    }
    Thread aborter("aborter", [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      group.Abort("layer conv1: no weights");
    });
    const Outcome outcome = OutcomeOf([&] { group.Run(DeviceSum(data), Deadline::After(kLong)); });
    aborter.Join();
    EXPECT_EQ(outcome.code, ErrorCode::kAborted);
    EXPECT_EQ(outcome.message, "layer conv1: no weights");
    EXPECT_LT(outcome.seconds, kLong / 4);
  });
}

INSTANTIATE_TEST_SUITE_P(Layout, DeviceFailures,
                         ::testing::Values(Layout::kOneHost, Layout::kHosts),
                         [](const auto& info) { return NameOf(info.param); });

TEST(DeviceRequests, AreNotFinalIfInvalid) {
  RunOnDevices(Layout::kOneHost, 2, [](Group& group) {
    const DeviceArray<float> data(std::vector<float>(100, 1));
    Request narrow = DeviceSum(data);
    narrow.wire = Wire::kBfloat16;
    EXPECT_THAT(OutcomeOf([&] { group.Run(narrow, Deadline::After(kLong)); }).message,
                HasSubstr("sent without conversion"));
    Request in_place = DeviceSum(data);
    in_place.operation = Operation::kAllToAll;
    EXPECT_THAT(OutcomeOf([&] { group.Run(in_place, Deadline::After(kLong)); }).message,
                HasSubstr("separate from the output"));
    group.Run(DeviceSum(data), Deadline::After(kLong));
    EXPECT_EQ(data.Values(), std::vector<float>(100, 2));
  });
}

// Simulates a backward pass that still runs when its gradient is submitted.
TEST(DeviceRequests, RunAfterEarlierWorkOfTheirStream) {
  RunOnDevices(Layout::kOneHost, 2, [](Group& group) {
    const cuda::Api& api = cuda::Library().Get();
    cuda::Context* context = nullptr;
    api.retain(&context, 0);
    api.set_current(context);
    cuda::Stream* stream = nullptr;
    ASSERT_EQ(api.stream_create(&stream, 0), cuda::kSuccess);
    const DeviceArray<float> data(std::vector<float>(100, 1));
    StandIn::Get().launch(
        stream,
        [](void* memory) {
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          for (float& value : static_cast<DeviceArray<float>*>(memory)->Host()) value = 7;
        },
        const_cast<DeviceArray<float>*>(&data));
    Request request = DeviceSum(data);
    request.stream = stream;
    group.Run(request, Deadline::After(kLong));
    EXPECT_EQ(data.Values(), std::vector<float>(100, 14));
    api.stream_destroy(stream);
    api.set_current(nullptr);
  });
}

TEST(DeviceRequests, LeaveTheCallersDeviceCurrent) {
  RunOnDevices(Layout::kOneHost, 2, [](Group& group) {
    const cuda::Api& api = cuda::Library().Get();
    cuda::Context* own = nullptr;
    api.retain(&own, 5);
    api.set_current(own);
    const DeviceArray<float> data(std::vector<float>(100));
    group.Run(DeviceSum(data), Deadline::After(kLong));
    cuda::Context* now = nullptr;
    api.get_current(&now);
    EXPECT_EQ(now, own);
    api.set_current(nullptr);
  });
}

}  // namespace
}  // namespace hearth::collective
