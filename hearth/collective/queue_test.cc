// Tests the errors of handles and the order of operations.
#include "hearth/collective/queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/collective/testing/ranks_testing.h"

namespace hearth::collective {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Request SumRequest(std::vector<float>& data, const std::string& name) {
  return {.operation = Operation::kAllReduce,
          .output = data.data(),
          .count = data.size(),
          .name = name};
}

Error ErrorOf(const Handle& handle, double seconds) {
  try {
    handle.Wait(Deadline::After(seconds));
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::kInternal, "nothing was thrown"};
}

class Queues : public WiringTest {};

TEST_P(Queues, ARankThatLeavesFailsEveryHandleAndIsNamed) {
  RunGroups(GetParam(), 2, [](Group& group) {
    if (group.rank() == 1) return;
    std::vector<float> data(10);
    Queue queue(group);
    const Handle first = queue.Submit(SumRequest(data, "conv1"));
    const Handle second = queue.Submit(SumRequest(data, "conv2"));
    const Error error = ErrorOf(first, 60);
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.message(),
                AllOf(HasSubstr("all-reduce 'conv1' of 40 bytes"), HasSubstr("rank 1 on host ")));
    EXPECT_EQ(ErrorOf(second, 60).message(), error.message());
    EXPECT_EQ(ErrorOf(first, 60).message(), error.message()) << "once more";
  });
}

TEST_P(Queues, AMismatchedNameIsReportedWithBothNames) {
  RunGroups(GetParam(), 2, [](Group& group) {
    std::vector<float> data(10);
    Queue queue(group);
    const Handle handle = queue.Submit(SumRequest(data, group.rank() == 0 ? "conv1" : "conv2"));
    const Error error = ErrorOf(handle, 60);
    if (error.code() == ErrorCode::kUnavailable) return;  // the other rank saw the mismatch first
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message(), AllOf(HasSubstr("'conv1'"), HasSubstr("'conv2'"),
                                       HasSubstr(group.rank() == 0 ? "rank 1" : "rank 0")));
  });
}

TEST_P(Queues, AWaitThatTimesOutLeavesTheOperationRunning) {
  std::promise<void> timed_out;
  RunGroups(GetParam(), 2, [&](Group& group) {
    std::vector<float> data(10, 1);
    Queue queue(group, 60);
    if (group.rank() == 1) timed_out.get_future().wait();
    const Handle handle = queue.Submit(SumRequest(data, "conv1"));
    if (group.rank() == 0) {
      const Error error = ErrorOf(handle, 0.05);
      EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
      EXPECT_THAT(error.message(), HasSubstr("all-reduce 'conv1' of 40 bytes"));
      timed_out.set_value();
    }
    handle.Wait(Deadline::After(60));
    EXPECT_EQ(data, std::vector<float>(10, 2));
  });
}

TEST(Queue, InvalidRequestsAreRejectedBeforeTheyAreQueued) {
  RunGroups(Wiring::kThreads, 2, [](Group& group) {
    std::vector<float> data(10, 1);
    Queue queue(group);
    const Request to_itself = {
        .operation = Operation::kSend, .output = data.data(), .count = 10, .peer = group.rank()};
    EXPECT_THAT([&] { queue.Submit(to_itself); },
                ::testing::ThrowsMessage<Error>(HasSubstr("with itself")));
    queue.Submit(SumRequest(data, "conv1")).Wait(Deadline::After(60));
    EXPECT_EQ(data, std::vector<float>(10, 2));
  });
}

TEST(Queue, CloseAbortsPendingOperations) {
  RunGroups(Wiring::kThreads, 2, [](Group& group) {
    if (group.rank() == 1) return;
    std::vector<float> data(10);
    std::vector<Handle> handles;
    {
      Queue queue(group);
      for (int i = 0; i < 3; ++i) handles.push_back(queue.Submit(SumRequest(data, "")));
      group.Abort("enough");
    }
    for (const Handle& handle : handles) {
      EXPECT_TRUE(handle.done());
      EXPECT_NE(ErrorOf(handle, 0).message(), "nothing was thrown");
    }
  });
}

TEST_P(Queues, TryRunUsesTheCallersThreadIfNothingIsPending) {
  RunGroups(GetParam(), 2, [](Group& group) {
    std::vector<float> data(10, 1);
    Queue queue(group);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(queue.TryRun(SumRequest(data, "conv1")));
    EXPECT_EQ(data, std::vector<float>(10, 8));
    queue.Submit(SumRequest(data, "conv2")).Wait(Deadline::After(60));
    EXPECT_TRUE(queue.TryRun(SumRequest(data, "conv3")));
    EXPECT_EQ(data, std::vector<float>(10, 32));
  });
}

TEST(Queue, TryRunDoesNotOvertakeSubmittedOperations) {
  std::promise<void> tried;
  RunGroups(Wiring::kThreads, 2, [&](Group& group) {
    std::vector<float> first(10, 1);
    std::vector<float> second(10, 1);
    Queue queue(group);
    if (group.rank() == 1) tried.get_future().wait();
    const Handle handle = queue.Submit(SumRequest(first, "conv1"));
    if (group.rank() == 0) {
      EXPECT_FALSE(queue.TryRun(SumRequest(second, "conv2")));
      tried.set_value();
    }
    handle.Wait(Deadline::After(60));
    EXPECT_EQ(first, std::vector<float>(10, 2));
    EXPECT_EQ(second, std::vector<float>(10, 1));
  });
}

TEST(Queue, OperationsSubmittedDuringTryRunFollowIt) {
  RunGroups(Wiring::kThreads, 2, [](Group& group) {
    std::vector<float> first(10, 1);
    std::vector<float> second(10, 1);
    Queue queue(group);
    // Either of the two equal operations may come first.
    const auto here = std::async(std::launch::async, [&] {
      if (queue.TryRun(SumRequest(first, "conv1"))) return;
      queue.Submit(SumRequest(first, "conv1")).Wait(Deadline::After(60));
    });
    if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    queue.Submit(SumRequest(second, "conv1")).Wait(Deadline::After(60));
    here.wait();
    EXPECT_EQ(first, std::vector<float>(10, 2));
    EXPECT_EQ(second, std::vector<float>(10, 2));
  });
}

TEST(Queue, CloseWaitsForTryRun) {
  RunGroups(Wiring::kThreads, 2, [](Group& group) {
    if (group.rank() == 1) return;
    std::vector<float> data(10);
    Queue queue(group);
    auto here = std::async(std::launch::async, [&] { queue.TryRun(SumRequest(data, "conv1")); });
    group.Abort("enough");
    queue.Close();
    EXPECT_THROW(here.get(), Error);
    EXPECT_THAT([&] { queue.TryRun(SumRequest(data, "conv2")); },
                ::testing::ThrowsMessage<Error>(HasSubstr("closed")));
    EXPECT_THAT([&] { queue.Submit(SumRequest(data, "conv2")); },
                ::testing::ThrowsMessage<Error>(HasSubstr("closed")));
    queue.Close();
  });
}

INSTANTIATE_TEST_SUITE_P(Wirings, Queues,
                         ::testing::Values(Wiring::kThreads, Wiring::kShared, Wiring::kTcp,
                                           Wiring::kTls, Wiring::kUcx, Wiring::kUcxPairs,
                                           Wiring::kPairs),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace hearth::collective
