#include "hearth/feed/row_reader.h"

#include <gmock/gmock.h>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/batch/chunks_image.h"
#include "hearth/feed/testing/task_testing.h"
#include "hearth/ring/testing/ring_testing.h"

namespace hearth::feed {
namespace {

using batch::ChunksImage;
using ring::WriteNumbers;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Json = nlohmann::json;

class RowReaderTest : public ::testing::Test {
 protected:
  void Announce(TestTask& task, int index, const Json& more = Json::object()) {
    queue_->Announce(task.link, Announced(index, more));
  }

  // Takes all rows of the next batch; returns its first number, or -1 if there is no batch.
  int64_t TakeBatch() {
    const auto batch = reader_.Next();
    if (!batch) return -1;
    reader_.Opened(batch->view->rows(), false);
    reader_.Give(batch->view->rows());
    return batch->view->column("n").AsInt64(0);
  }

  RecordedMessages driver_;
  TestTask task_, other_;
  std::shared_ptr<PartitionQueue> queue_ =
      std::make_shared<PartitionQueue>(driver_.send(), [] { return ::testing::TempDir(); });
  RowReader reader_{queue_};
};

TEST_F(RowReaderTest, ReadsPartitionsUpToTheEndOfTheFeed) {
  Announce(task_, 0);
  Announce(other_, 1);
  queue_->End();
  WriteNumbers(*task_.rows, 1, 2);
  task_.rows->WriteFlush(Soon());
  WriteNumbers(*other_.rows, 5, 1);
  other_.rows->WriteFlush(Soon());
  EXPECT_EQ(TakeBatch(), 1);
  EXPECT_EQ(TakeBatch(), -1);
  EXPECT_FALSE(reader_.ended());
  EXPECT_EQ(TakeBatch(), 5);
  EXPECT_EQ(TakeBatch(), -1);
  EXPECT_EQ(TakeBatch(), -1);
  EXPECT_TRUE(reader_.ended());
  EXPECT_EQ(task_.received.all("taken").size(), 1u);
  const Json last = driver_.all("rows").back();
  EXPECT_EQ(last.at("partition"), 1);
  EXPECT_EQ(last.at("rows"), 1);
  EXPECT_EQ(last.at("taken"), 3);
  EXPECT_GT(last.at("waited_s"), 0);
}

TEST_F(RowReaderTest, BatchIsSettledWithItsLastRow) {
  Announce(task_, 0);
  WriteNumbers(*task_.rows, 1, 3);
  task_.rows->WriteFlush(Soon());
  ASSERT_TRUE(reader_.Next());
  reader_.Opened(3, false);
  reader_.Give(2);
  task_.link->send({{"op", "mark"}});  // precedes "taken" in the messages
  EXPECT_EQ(CodeOf([&] { reader_.Give(2); }), ErrorCode::kInvalidArgument);
  reader_.Give(1);
  EXPECT_THAT(task_.received.all("taken"), IsEmpty());  // the flush mark was not read yet
  EXPECT_FALSE(reader_.Next());
  EXPECT_EQ(task_.received.all("taken").size(), 1u);
}

TEST_F(RowReaderTest, BatchesWithoutARowAreSettledAtTheEnd) {
  Announce(task_, 0);
  WriteNumbers(*task_.rows, 1, 1);
  task_.rows->WriteFlush(Soon());
  ASSERT_TRUE(reader_.Next());
  reader_.Opened(0, false);
  EXPECT_FALSE(reader_.Next());
  EXPECT_EQ(task_.received.all("taken").size(), 1u);
}

TEST_F(RowReaderTest, ColumnsOutliveTheRing) {
  Announce(task_, 0);
  WriteNumbers(*task_.rows, 1, 1);
  const auto batch = reader_.Next();
  EXPECT_TRUE(batch->image.empty());
  for (int32_t number = 2; number < 5; ++number) {
    WriteNumbers(*task_.rows, number, 60'000);  // the ring has 1 MiB
    ASSERT_TRUE(reader_.Next());
  }
  EXPECT_EQ(batch->view->column("n").AsInt64(0), 1);
}

TEST_F(RowReaderTest, RowAcrossTwoBatchesIsDeliveredWithTheSecond) {
  Announce(task_, 0, {{"fenced", true}});
  const int64_t claim = driver_.last().at("claim");
  queue_->Answer({{"claim", claim},
                  {"answer", "begin"},
                  {"batches", 0},
                  {"hash", 0},
                  {"rows", 0},
                  {"whole", false}});
  WriteNumbers(*task_.rows, 1, 1);
  WriteNumbers(*task_.rows, 2, 1);
  EXPECT_EQ(TakeBatch(), 1);
  reader_.Next();
  reader_.Opened(0, true);
  task_.rows.reset();
  EXPECT_FALSE(reader_.Next());  // the task is gone
  ASSERT_EQ(driver_.all("claim_end").size(), 1u);
  EXPECT_EQ(driver_.last().at("batches"), 1);
  EXPECT_EQ(driver_.last().at("rows"), 1);
}

TEST_F(RowReaderTest, CompleteRowsOfLostTasksAreSpooled) {
  const Json keep = {{"keep", true}};
  Announce(task_, 0, keep);
  WriteNumbers(*task_.rows, 1, 1);
  WriteNumbers(*task_.rows, 2, 1);
  EXPECT_EQ(TakeBatch(), 1);
  reader_.Next();
  reader_.Opened(0, true);
  task_.rows.reset();
  EXPECT_FALSE(reader_.Next());
  Announce(other_, 0, keep);
  WriteNumbers(*other_.rows, 3, 1);
  other_.rows->WriteFlush(Soon());
  EXPECT_EQ(TakeBatch(), 3);
  EXPECT_EQ(TakeBatch(), -1);
  queue_->AddReplay("again", "f", 2);
  for (const int64_t number : {1, 3, 1, 3, -1}) EXPECT_EQ(TakeBatch(), number);
  EXPECT_EQ(driver_.all("replayed").size(), 1u);
}

TEST_F(RowReaderTest, ResultsReturnToThePartitionsOfTheirRows) {
  const Json inference = {{"mode", "inference"}};
  Announce(task_, 0, inference);
  Announce(other_, 1, inference);
  WriteNumbers(*task_.rows, 1, 2);
  task_.rows->WriteFlush(Soon());
  WriteNumbers(*other_.rows, 5, 1);
  other_.rows->WriteFlush(Soon());
  for (const int64_t number : {1, -1, 5, -1}) EXPECT_EQ(TakeBatch(), number);
  EXPECT_EQ(reader_.pending_results(), 3);
  EXPECT_EQ(reader_.pending_in_first(), 2);
  EXPECT_EQ(CodeOf([&] { reader_.Answered(3); }), ErrorCode::kInvalidArgument);
  const std::string_view chunks[] = {"results"};
  EXPECT_TRUE(reader_.WriteResults(ChunksImage(chunks, true)));
  EXPECT_THAT(task_.received.all("taken"), IsEmpty());
  reader_.Answered(2);
  EXPECT_EQ(task_.received.all("taken").size(), 1u);
  EXPECT_EQ(task_.results->Next(Soon()).kind, ring::EntryKind::kBatch);
  EXPECT_EQ(reader_.pending_results(), 1);
  other_.results.reset();
  EXPECT_FALSE(reader_.WriteResults(ChunksImage(chunks, true)));
  reader_.Answered(1);
  EXPECT_EQ(reader_.pending_in_first(), 0);
  EXPECT_EQ(CodeOf([&] { reader_.WriteResults(ChunksImage(chunks, true)); }),
            ErrorCode::kInvalidArgument);
}

TEST_F(RowReaderTest, ClusterFailureIsThrownInsteadOfThePartitionsEnd) {
  Announce(task_, 0);
  WriteNumbers(*task_.rows, 1, 1);
  EXPECT_EQ(TakeBatch(), 1);
  queue_->Fail("a node failed");
  const Error error = Thrown([&] { reader_.Next(); });
  EXPECT_EQ(error.code(), ErrorCode::kAborted);
  EXPECT_EQ(error.message(), "a node failed");
}

TEST_F(RowReaderTest, TerminatedPartitionEndsForItsReader) {
  Announce(task_, 0);
  WriteNumbers(*task_.rows, 1, 1);
  EXPECT_EQ(TakeBatch(), 1);
  queue_->Terminate();
  EXPECT_FALSE(reader_.Next());
  EXPECT_EQ(task_.received.last(), Json({{"op", "terminated"}}));
}

}  // namespace
}  // namespace hearth::feed
