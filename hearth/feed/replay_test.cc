#include "hearth/feed/replay.h"

#include <gmock/gmock.h>

#include "hearth/batch/batch_builder.h"
#include "hearth/batch/testing/batch_testing.h"
#include "hearth/feed/testing/task_testing.h"

namespace hearth::feed {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Json = nlohmann::json;

void SpoolRow(SpooledRows& spooled, int32_t number, RowFormat format = {}) {
  batch::BatchBuilder rows;
  rows.AddInt32("n", {number});
  spooled.Add(batch::TestImage(rows).bytes(), format);
}

std::vector<int64_t> ReplayAll(Replay& replay) {
  std::vector<int64_t> numbers;
  while (const auto batch = replay.Read()) {
    numbers.push_back(batch->view->column("n").AsInt64(0));
    replay.Settle(1);
  }
  return numbers;
}

const Json kReplayed = {{"event", "replayed"}, {"feed", "again"}};

class ReplayTest : public ::testing::Test {
 protected:
  std::shared_ptr<SpooledRows> spooled_ = std::make_shared<SpooledRows>(::testing::TempDir());
  RecordedMessages driver_;
};

TEST_F(ReplayTest, ReplaysAllRowsTheRequestedNumberOfTimes) {
  for (const int32_t number : {1, 2}) SpoolRow(*spooled_, number);
  spooled_->Commit();
  Replay replay("again", spooled_, 3, driver_.send());
  EXPECT_EQ(replay.index(), -1);
  EXPECT_THAT(ReplayAll(replay), ElementsAre(1, 2, 1, 2, 1, 2));
  EXPECT_THAT(driver_.all(), ElementsAre(kReplayed));
}

TEST_F(ReplayTest, OnlyCompleteRowsOfABrokenPartitionAreReplayed) {
  SpoolRow(*spooled_, 1);
  spooled_->Commit();
  SpoolRow(*spooled_, 2);  // a row continues in a batch that never arrives
  spooled_->Rollback();
  SpoolRow(*spooled_, 3);
  spooled_->Commit();
  SpoolRow(*spooled_, 4);
  Replay replay("again", spooled_, 1, driver_.send());
  EXPECT_THAT(ReplayAll(replay), ElementsAre(1, 3));
}

TEST_F(ReplayTest, BatchKeepsItsFormatAndOutlivesTheReplay) {
  SpoolRow(*spooled_, 1, {true, true, false});
  SpoolRow(*spooled_, 2, {true, false, true});
  spooled_->Commit();
  std::optional<Partition::Batch> first, second;
  {
    Replay replay("again", std::exchange(spooled_, nullptr), 1, driver_.send());
    first = replay.Read();
    second = replay.Read();
  }
  EXPECT_TRUE(first->format.batched);
  EXPECT_FALSE(first->format.remote);
  EXPECT_TRUE(second->format.remote);
  EXPECT_EQ(second->view->column("n").AsInt64(0), 2);
}

TEST_F(ReplayTest, LaterEpochsDoNotSeeTheProgramsWrites) {
  batch::BatchBuilder rows;
  rows.AddInt32("n", std::vector<int32_t>(1 << 18, 7));  // 1 MiB
  spooled_->Add(batch::TestImage(rows).bytes(), {});
  spooled_->Commit();
  Replay replay("again", spooled_, 2, driver_.send());
  const auto first = replay.Read();
  const batch::ColumnView& numbers = first->view->column("n");
  const_cast<uint8_t*>(numbers.buffers().data)[0] = 8;
  for (int i = 0; i < 300; ++i) spooled_->CountRead(0);  // pages are dropped after 256 MiB
  EXPECT_EQ(numbers.AsInt64(0), 8);
  EXPECT_EQ(replay.Read()->view->column("n").AsInt64(0), 7);
}

TEST_F(ReplayTest, EmptyReplayIsReportedAtOnce) {
  Replay nothing("again", nullptr, 2, driver_.send());
  EXPECT_THAT(driver_.all(), ElementsAre(kReplayed));
  EXPECT_EQ(nothing.Read(), std::nullopt);
  nothing.Refuse("over");
  nothing.Drop();
  EXPECT_EQ(driver_.all().size(), 1u);
}

TEST_F(ReplayTest, RefusalIsReportedToTheDriver) {
  SpoolRow(*spooled_, 1);
  spooled_->Commit();
  Replay refused("again", spooled_, 1, driver_.send());
  refused.Refuse("the cluster failed");
  EXPECT_EQ(driver_.last(), Json({{"event", "feed_error"},
                                  {"feed", "again"},
                                  {"text", "the cluster failed"},
                                  {"timeout", false}}));
  Replay dropped("again", spooled_, 1, driver_.send());
  dropped.Drop();
  EXPECT_EQ(driver_.last(), kReplayed);
}

}  // namespace
}  // namespace hearth::feed
