#include "hearth/feed/task_partition.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/batch/batch_builder.h"
#include "hearth/batch/chunks_image.h"
#include "hearth/batch/row_hash.h"
#include "hearth/feed/testing/task_testing.h"
#include "hearth/ring/testing/ring_testing.h"

namespace hearth::feed {
namespace {

using ring::WriteNumbers;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

class TaskPartitionTest : public ::testing::Test {
 protected:
  void Open(const Json& more = Json::object()) {
    partition_ = std::make_unique<TaskPartition>(task_.link, Announced(3, more), driver_.send());
  }

  // Writes one batch per number, with one row each, then a flush mark.
  void Write(const std::vector<int32_t>& numbers) {
    for (const int32_t number : numbers) WriteNumbers(*task_.rows, number, 1);
    task_.rows->WriteFlush(Soon());
  }

  // Returns the numbers in the rest of the partition; settles each batch at once.
  std::vector<int64_t> ReadAll() {
    std::vector<int64_t> numbers;
    while (auto batch = partition_->Read()) {
      numbers.push_back(batch->view->column("n").AsInt64(0));
      partition_->Release();
      partition_->NoteDelivered();
      ++partition_->taken;
      partition_->Settle(1);
    }
    return numbers;
  }

  static uint64_t HashOf(const std::vector<int32_t>& numbers) {
    uint64_t hash = 0;
    for (const int32_t number : numbers) {
      hash = batch::HashBatch(hash, *batch::BatchBuilder().AddInt32("n", {number}).Build());
    }
    return hash;
  }

  void Begin(const std::vector<int32_t>& before, bool whole = false) {
    partition_->Begin({{"answer", "begin"},
                       {"batches", before.size()},
                       {"hash", HashOf(before)},
                       {"rows", before.size()},
                       {"whole", whole}});
  }

  TestTask task_;
  RecordedMessages driver_;
  std::unique_ptr<TaskPartition> partition_;
};

TEST_F(TaskPartitionTest, IsTakenOnceAllBatchesAreSettledAndTheTotalIsKnown) {
  Open();
  Write({1, 2});
  const auto first = partition_->Read();
  const auto second = partition_->Read();
  partition_->Settle(1);
  partition_->SetTotal(2);
  EXPECT_THAT(task_.received.all("taken"), IsEmpty());
  partition_->Settle(1);
  EXPECT_THAT(task_.received.all("taken"), ElementsAre(Json{{"op", "taken"}}));
  EXPECT_EQ(partition_->Read(), std::nullopt);
  EXPECT_EQ(task_.received.all("taken").size(), 1u);
  EXPECT_THAT(driver_.all(), IsEmpty());  // attempts are not fenced
}

TEST_F(TaskPartitionTest, MarkEndsItIfTheTaskDiesBeforeTheEndMessage) {
  Open();
  Write({1});
  EXPECT_THAT(ReadAll(), ElementsAre(1));
  EXPECT_EQ(task_.received.all("taken").size(), 1u);
}

TEST_F(TaskPartitionTest, PendingResultsKeepItOpenAndAMarkFollowsThem) {
  Open({{"mode", "inference"}});
  Write({1});
  ASSERT_TRUE(partition_->Read());
  partition_->Hold(1);
  partition_->Settle(1);
  partition_->SetTotal(1);
  EXPECT_THAT(task_.received.all("taken"), IsEmpty());
  const std::string_view chunks[] = {"result"};
  partition_->WriteResults(batch::ChunksImage(chunks, true));
  partition_->Settle(1);
  EXPECT_EQ(task_.received.all("taken").size(), 1u);
  EXPECT_EQ(task_.results->Next(Soon()).kind, ring::EntryKind::kBatch);
  EXPECT_EQ(task_.results->Next(Soon()).kind, ring::EntryKind::kFlush);
}

TEST_F(TaskPartitionTest, ClaimsAndReportsItsProgressToTheDriver) {
  Open({{"fenced", true}});
  partition_->RequestClaim();
  EXPECT_THAT(
      driver_.all("claim"),
      ElementsAre(Json{
          {"event", "claim"}, {"feed", "f"}, {"partition", 3}, {"claim", partition_->claim()}}));
  Begin({});
  EXPECT_EQ(task_.received.last(), Json({{"op", "begin"}}));
  Write({1, 2});
  EXPECT_THAT(ReadAll(), ElementsAre(1, 2));
  EXPECT_THAT(driver_.all("claim_end"), ElementsAre(Json{{"event", "claim_end"},
                                                         {"feed", "f"},
                                                         {"partition", 3},
                                                         {"claim", partition_->claim()},
                                                         {"state", "taken"},
                                                         {"rows", 2},
                                                         {"batches", 2},
                                                         {"hash", HashOf({1, 2})}}));
}

TEST_F(TaskPartitionTest, ReportsCompleteRowsAfterALoss) {
  Open({{"fenced", true}});
  Begin({});
  WriteNumbers(*task_.rows, 1, 1);
  WriteNumbers(*task_.rows, 2, 1);
  partition_->Read();
  partition_->NoteDelivered();
  partition_->Settle(1);
  partition_->Read();  // the last row continues in the next batch
  task_.rows.reset();
  EXPECT_EQ(CodeOf([&] { partition_->Read(); }), ErrorCode::kUnavailable);
  partition_->Lose();
  partition_->Lose();
  ASSERT_EQ(driver_.all("claim_end").size(), 1u);
  EXPECT_EQ(driver_.last().at("state"), "broken");
  EXPECT_EQ(driver_.last().at("batches"), 1);
  EXPECT_EQ(driver_.last().at("hash"), HashOf({1}));
}

struct Again {
  const char* name;
  bool whole;
  std::vector<int32_t> rows;
  std::optional<std::vector<int64_t>> delivered;  // nullopt: rejected
};

class ResentRows : public TaskPartitionTest, public ::testing::WithParamInterface<Again> {};

TEST_P(ResentRows, AreComparedWithTheEarlierAttempt) {
  Open({{"fenced", true}});
  Begin({1, 2}, GetParam().whole);
  Write(GetParam().rows);
  if (GetParam().delivered) {
    EXPECT_EQ(ReadAll(), *GetParam().delivered);
    EXPECT_EQ(task_.received.all("taken").size(), 1u);
    return;
  }
  const Error error = Thrown([&] { ReadAll(); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.message(), HasSubstr("partition 3 has other rows"));
  ASSERT_EQ(driver_.all("feed_error").size(), 1u);
  EXPECT_EQ(driver_.all("feed_error")[0].at("text"), error.message());
  EXPECT_EQ(driver_.last().at("state"), "broken");
  EXPECT_EQ(task_.received.last(), Json({{"error", error.message()}}));
  EXPECT_FALSE(WriteNumbers(*task_.rows, 9, 1));  // the ring is closed
}

INSTANTIATE_TEST_SUITE_P(
    TaskPartition, ResentRows,
    ::testing::Values(Again{"WholeAndTheSame", true, {1, 2}, std::vector<int64_t>{}},
                      Again{"WholeAndMore", true, {1, 2, 3}, std::nullopt},
                      Again{"WholeAndFewer", true, {1}, std::nullopt},
                      Again{"BehindTheSame", false, {1, 2, 3}, std::vector<int64_t>{3}},
                      Again{"FewerThanWereDelivered", false, {1}, std::nullopt},
                      Again{"BehindOthers", false, {1, 3, 4}, std::nullopt},
                      Again{"InAnotherOrder", false, {2, 1, 3}, std::nullopt}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(TaskPartitionTest, UnneededRestIsDroppedOnce) {
  Open({{"fenced", true}});
  Begin({});
  partition_->Drop();
  partition_->Refuse("too late");
  EXPECT_EQ(task_.received.last(), Json({{"op", "terminated"}}));
  EXPECT_EQ(driver_.last().at("state"), "terminated");
  EXPECT_EQ(CodeOf([&] { partition_->Read(); }), ErrorCode::kUnavailable);
  EXPECT_FALSE(WriteNumbers(*task_.rows, 1, 1));
}

TEST_F(TaskPartitionTest, TaskMayDieBeforeTheEndOfItsResults) {
  Open({{"mode", "inference"}});
  Write({1});
  ASSERT_TRUE(partition_->Read());
  task_.results.reset();
  partition_->Settle(1);
  partition_->SetTotal(1);
  EXPECT_THAT(task_.received.all("taken"), IsEmpty());
}

TEST_F(TaskPartitionTest, ClusterFailureEndsTheWaitForTheReaderOfResults) {
  Open({{"mode", "inference"}});
  Write({1});
  ASSERT_TRUE(partition_->Read());
  partition_->Settle(1);
  FillResults(task_);
  auto ending = std::async(std::launch::async, [&] { partition_->SetTotal(1); });
  // By now SetTotal() is usually waiting in its flush; otherwise SetTotal() finds the failure
  // later.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  partition_->Fail("the cluster failed");
  EXPECT_EQ(ending.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  task_.link->Close();  // ends the wait even if the test fails
  ending.get();
  EXPECT_EQ(task_.received.last(), Json({{"error", "the cluster failed"}}));
  EXPECT_THAT(task_.received.all("taken"), IsEmpty());
}

TEST_F(TaskPartitionTest, AwaitEndWaitsForAConcurrentEnd) {
  for (int i = 0; i < 1000; ++i) {
    TaskPartition partition(task_.link, Announced(3), driver_.send());
    std::atomic<int> ready = 0;
    std::thread session([&] {
      for (++ready; ready < 2;) std::this_thread::yield();
      partition.SetTotal(0);
    });
    while (ready < 1) std::this_thread::yield();
    ++ready;
    // Delays by up to a microsecond, so that both threads race.
    const auto later = std::chrono::steady_clock::now() + std::chrono::nanoseconds(i % 1000);
    while (std::chrono::steady_clock::now() < later) continue;
    partition.AwaitEnd(Soon());
    partition.Refuse("the program has returned");
    session.join();
    ASSERT_FALSE(task_.link->closed()) << "refused, " << i;
  }
}

TEST_F(TaskPartitionTest, MessageWithoutAFieldIsAnErrorThatNamesIt) {
  const Error error = Thrown([&] { TaskPartition(task_.link, {{"feed", "f"}}, driver_.send()); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("no field 'index'"));
  EXPECT_THAT(Thrown([&] { Open({{"keep", "yes"}}); }).message(), HasSubstr("'keep'"));
}

}  // namespace
}  // namespace hearth::feed
