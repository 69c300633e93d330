#include "hearth/feed/partition_queue.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "hearth/base/testing/error_testing.h"
#include "hearth/batch/batch_builder.h"
#include "hearth/batch/chunks_image.h"
#include "hearth/batch/testing/batch_testing.h"
#include "hearth/feed/testing/task_testing.h"
#include "hearth/ring/testing/ring_testing.h"

namespace hearth::feed {
namespace {

using ring::WriteNumbers;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Json = nlohmann::json;

class PartitionQueueTest : public ::testing::Test {
 protected:
  std::shared_ptr<TaskPartition> Announce(TestTask& task, int index, bool fenced = false) {
    return queue_.Announce(task.link, Announced(index, {{"fenced", fenced}}));
  }

  // Delivers the driver's answer to a partition's claim; returns whether the queue knew the claim.
  bool Answer(const TaskPartition& partition, const std::string& answer) {
    return queue_.Answer({{"claim", partition.claim()},
                          {"answer", answer},
                          {"batches", 0},
                          {"hash", 0},
                          {"rows", 0},
                          {"whole", false}});
  }

  // Indices of the waiting partitions, in order. End() must have been called.
  std::vector<int> Indexes() {
    std::vector<int> indexes;
    while (const auto partition = queue_.Next()) indexes.push_back(partition->index());
    return indexes;
  }

  RecordedMessages driver_;
  int folders_ = 0;
  TestTask first_, second_;
  PartitionQueue queue_{driver_.send(), [this] {
                          ++folders_;
                          return ::testing::TempDir();
                        }};
};

TEST_F(PartitionQueueTest, PartitionsAreReturnedInOrderThenTheEnd) {
  Announce(first_, 1);
  Announce(second_, 0);
  queue_.End();
  EXPECT_THAT(Indexes(), ElementsAre(1, 0));
  EXPECT_EQ(queue_.Next(), nullptr);
}

TEST_F(PartitionQueueTest, WaitEndsForAPartitionAndForAFailure) {
  std::promise<int> first;
  std::thread program([&] {
    first.set_value(queue_.Next()->index());
    EXPECT_EQ(Thrown([&] { queue_.Next(); }).message(), "a node failed");
  });
  Announce(first_, 1);
  EXPECT_EQ(first.get_future().get(), 1);
  queue_.Fail("a node failed");
  program.join();
  EXPECT_EQ(queue_.failure(), "a node failed");
  EXPECT_EQ(CodeOf([&] { queue_.Check(); }), ErrorCode::kAborted);
}

TEST_F(PartitionQueueTest, FencedPartitionIsQueuedOnceTheDriverAllowsIt) {
  const auto partition = Announce(first_, 1, true);
  Announce(second_, 2);
  EXPECT_EQ(driver_.all("claim").size(), 1u);
  EXPECT_EQ(queue_.Next()->index(), 2);
  EXPECT_TRUE(Answer(*partition, "wait"));
  EXPECT_EQ(first_.received.last(), Json({{"op", "progress"}}));
  EXPECT_TRUE(Answer(*partition, "begin"));
  EXPECT_FALSE(Answer(*partition, "begin"));  // the claim was already answered
  EXPECT_EQ(queue_.Next(), partition);
}

TEST_F(PartitionQueueTest, TaskIsNotifiedOfAnotherAttemptsResult) {
  const auto taken = Announce(first_, 1, true);
  Answer(*taken, "taken");
  EXPECT_EQ(first_.received.last(), Json({{"op", "taken"}}));
  const auto terminated = Announce(first_, 2, true);
  Answer(*terminated, "terminated");
  EXPECT_EQ(first_.received.last(), Json({{"op", "terminated"}}));
  const auto over = Announce(first_, 3, true);
  Answer(*over, "over");
  EXPECT_EQ(first_.received.last(),
            Json({{"error", "the Spark job that feeds these rows has ended"}}));
  queue_.End();
  EXPECT_THAT(Indexes(), IsEmpty());
}

TEST_F(PartitionQueueTest, LostTasksPartitionIsRemovedUnlessItIsBeingRead) {
  const auto reading = Announce(first_, 1);
  EXPECT_EQ(queue_.Next(), reading);
  const auto waiting = Announce(second_, 2);
  queue_.Lose(reading);
  queue_.Lose(waiting);
  queue_.End();
  EXPECT_THAT(Indexes(), IsEmpty());
}

TEST_F(PartitionQueueTest, LostTaskIsRejectedAndReleasesItsClaim) {
  const auto claiming = Announce(first_, 1, true);
  queue_.Lose(claiming);
  EXPECT_FALSE(Answer(*claiming, "begin"));
  const auto begun = Announce(second_, 2, true);
  Answer(*begun, "begin");
  queue_.Lose(begun);
  ASSERT_EQ(driver_.all("claim_end").size(), 1u);
  EXPECT_EQ(driver_.last().at("partition"), 2);
  EXPECT_EQ(driver_.last().at("state"), "broken");
}

TEST_F(PartitionQueueTest, FailureReachesCurrentAndFuturePartitions) {
  TestTask third, fourth;
  Announce(first_, 1);
  queue_.Next();
  Announce(second_, 2);
  Announce(third, 3, true);
  queue_.Fail("a node failed");
  Announce(fourth, 4);
  for (TestTask* task : {&first_, &second_, &third, &fourth}) {
    EXPECT_EQ(task->received.last(), Json({{"error", "a node failed"}}));
    EXPECT_FALSE(WriteNumbers(*task->rows, 1, 1));
  }
}

TEST_F(PartitionQueueTest, FailureReachesEachReadersPartitionUntilItIsDone) {
  TestTask third;
  const auto done = Announce(first_, 1);
  EXPECT_EQ(queue_.Next(), done);
  queue_.Done(done);
  Announce(second_, 2);
  Announce(third, 3);
  EXPECT_EQ(queue_.Next()->index(), 2);
  EXPECT_EQ(queue_.Next()->index(), 3);
  queue_.Fail("a node failed");
  EXPECT_THAT(first_.received.all(), IsEmpty());
  EXPECT_EQ(second_.received.last(), Json({{"error", "a node failed"}}));
  EXPECT_EQ(third.received.last(), Json({{"error", "a node failed"}}));
}

TEST_F(PartitionQueueTest, AtTheEndNoReaderGetsThePartitionOfAnother) {
  std::promise<void> taken;
  std::atomic<int> readers = 0;
  const auto read = [&] {
    ++readers;
    const auto partition = queue_.Next();
    if (partition != nullptr) taken.set_value();
    return partition;
  };
  auto one = std::async(std::launch::async, read), other = std::async(std::launch::async, read);
  while (readers < 2) std::this_thread::yield();
  const auto partition = Announce(first_, 1);
  taken.get_future().wait();
  queue_.End();
  const auto first = one.get(), second = other.get();
  EXPECT_NE(first, second);
  EXPECT_TRUE(first == nullptr || second == nullptr);
}

TEST_F(PartitionQueueTest, TerminatedFeedSkipsRowsWithoutAnError) {
  TestTask third;
  Announce(first_, 1);
  Announce(second_, 2, true);
  queue_.Terminate();
  Announce(third, 3);
  for (TestTask* task : {&first_, &second_, &third}) {
    EXPECT_EQ(task->received.last(), Json({{"op", "terminated"}}));
  }
  EXPECT_TRUE(queue_.terminated());
  queue_.Close("the main function has returned");
  queue_.Check();
}

TEST_F(PartitionQueueTest, RemainingRowsAfterTheReaderExitsAreAnError) {
  Announce(first_, 1);
  queue_.Close("the main function has returned");
  EXPECT_EQ(first_.received.last(), Json({{"error", "the main function has returned"}}));
}

TEST_F(PartitionQueueTest, ReaderMayExitBeforeTheEndOfFeedMessage) {
  const auto partition = Announce(first_, 1);
  WriteNumbers(*first_.rows, 1, 1);
  queue_.Next()->Read();
  partition->Settle(1);
  std::thread task([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    partition->SetTotal(1);
  });
  queue_.Close("the main function has returned");
  task.join();
  EXPECT_THAT(first_.received.all(), ElementsAre(Json{{"op", "taken"}}));
}

TEST_F(PartitionQueueTest, UndeliveredRowsAreAnErrorAtOnce) {
  bool at_once = false;  // must be set in one of twenty runs; the machine may be busy
  for (int i = 0; i < 20 && !at_once; ++i) {
    TestTask task;
    PartitionQueue queue(driver_.send(), [] { return ::testing::TempDir(); });
    queue.Announce(task.link, Announced(1));
    WriteNumbers(*task.rows, 1, 1);
    queue.Next()->Read();
    const auto began = std::chrono::steady_clock::now();
    queue.Close("the main function has returned");
    at_once = std::chrono::steady_clock::now() - began < std::chrono::milliseconds(500);
    EXPECT_EQ(task.received.last(), Json({{"error", "the main function has returned"}}));
  }
  EXPECT_TRUE(at_once);
}

TEST_F(PartitionQueueTest, FailureEndsTheWaitForPendingResults) {
  const Json inference = {{"mode", "inference"}};
  queue_.Announce(first_.link, Announced(0, inference));
  queue_.Announce(second_.link, Announced(1, inference));
  const auto pending = queue_.Next();
  EXPECT_EQ(queue_.Next()->index(), 1);  // the program reads ahead before it sends results
  FillResults(first_);
  auto answer = std::async(std::launch::async, [&] {
    const std::string_view chunks[] = {"result"};
    return CodeOf([&] { pending->WriteResults(batch::ChunksImage(chunks, true)); });
  });
  queue_.Fail("the cluster failed");
  EXPECT_EQ(answer.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  first_.link->Close();  // ends the wait even if the test fails
  EXPECT_EQ(answer.get(), ErrorCode::kAborted);
  EXPECT_EQ(first_.received.last(), Json({{"error", "the cluster failed"}}));
}

TEST_F(PartitionQueueTest, PartitionAfterTheEndIsRejected) {
  queue_.End();
  Announce(first_, 1);
  EXPECT_EQ(first_.received.last(), Json({{"error", "the feed has been ended by shutdown()"}}));
  EXPECT_EQ(queue_.Next(), nullptr);
}

TEST_F(PartitionQueueTest, SpooledRowsAreReplayedAndTheirFolderIsCreatedOnDemand) {
  EXPECT_EQ(folders_, 0);
  batch::BatchBuilder rows;
  rows.AddInt32("n", {7});
  queue_.Spooled("f").Add(batch::TestImage(rows).bytes(), {});
  queue_.Spooled("f").Commit();
  EXPECT_EQ(folders_, 1);
  queue_.AddReplay("again", "f", 1);
  const auto replay = queue_.Next();
  EXPECT_EQ(replay->feed(), "again");
  EXPECT_EQ(replay->Read()->view->column("n").AsInt64(0), 7);
  queue_.AddReplay("once more", "f", 1);
  EXPECT_EQ(queue_.Next()->Read(), std::nullopt);
}

}  // namespace
}  // namespace hearth::feed
