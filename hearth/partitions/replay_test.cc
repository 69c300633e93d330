#include "hearth/partitions/replay.h"

#include <gmock/gmock.h>

#include "hearth/batch/batch_builder.h"
#include "hearth/batch/testing/batch_testing.h"
#include "hearth/partitions/testing/task_testing.h"

namespace hearth::partitions {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Json = nlohmann::json;

void KeepRow(KeptRows& kept, int32_t number, RowFormat format = {}) {
  batch::BatchBuilder rows;
  rows.AddInt32("n", {number});
  kept.Add(batch::TestImage(rows).bytes(), format);
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
  std::shared_ptr<KeptRows> kept_ = std::make_shared<KeptRows>(::testing::TempDir());
  Told driver_;
};

TEST_F(ReplayTest, GivesAllKeptRowsAsOftenAsItIsTold) {
  for (const int32_t number : {1, 2}) KeepRow(*kept_, number);
  kept_->Commit();
  Replay replay("again", kept_, 3, driver_.tell());
  EXPECT_EQ(replay.index(), -1);
  EXPECT_THAT(ReplayAll(replay), ElementsAre(1, 2, 1, 2, 1, 2));
  EXPECT_THAT(driver_.all(), ElementsAre(kReplayed));
}

TEST_F(ReplayTest, RowsOfABrokenPartitionAreThoseThatWereWhole) {
  KeepRow(*kept_, 1);
  kept_->Commit();
  KeepRow(*kept_, 2);  // a row goes on in a batch that never comes
  kept_->Rollback();
  KeepRow(*kept_, 3);
  kept_->Commit();
  KeepRow(*kept_, 4);
  Replay replay("again", kept_, 1, driver_.tell());
  EXPECT_THAT(ReplayAll(replay), ElementsAre(1, 3));
}

TEST_F(ReplayTest, EachBatchKeepsItsFormatAndLivesAsLongAsAnyoneReadsIt) {
  KeepRow(*kept_, 1, {true, true, false});
  KeepRow(*kept_, 2, {true, false, true});
  kept_->Commit();
  std::optional<Partition::Batch> first, second;
  {
    Replay replay("again", std::exchange(kept_, nullptr), 1, driver_.tell());
    first = replay.Read();
    second = replay.Read();
  }
  EXPECT_TRUE(first->format.batched);
  EXPECT_FALSE(first->format.from_afar);
  EXPECT_TRUE(second->format.from_afar);
  EXPECT_EQ(second->view->column("n").AsInt64(0), 2);
}

TEST_F(ReplayTest, WritesOfTheProgramStayAndAreNotSeenByLaterEpochs) {
  batch::BatchBuilder rows;
  rows.AddInt32("n", std::vector<int32_t>(1 << 18, 7));  // 1 MiB
  kept_->Add(batch::TestImage(rows).bytes(), {});
  kept_->Commit();
  Replay replay("again", kept_, 2, driver_.tell());
  const auto first = replay.Read();
  const batch::ColumnView& numbers = first->view->column("n");
  const_cast<uint8_t*>(numbers.buffers().data)[0] = 8;
  for (int i = 0; i < 300; ++i) kept_->CountRead(0);  // pages are dropped after 256 MiB
  EXPECT_EQ(numbers.AsInt64(0), 8);
  EXPECT_EQ(replay.Read()->view->column("n").AsInt64(0), 7);
}

TEST_F(ReplayTest, WithoutRowsTheDriverHearsAtOnceThatItIsDone) {
  Replay nothing("again", nullptr, 2, driver_.tell());
  EXPECT_THAT(driver_.all(), ElementsAre(kReplayed));
  EXPECT_EQ(nothing.Read(), std::nullopt);
  nothing.Refuse("over");
  nothing.Drop();
  EXPECT_EQ(driver_.all().size(), 1u);
}

TEST_F(ReplayTest, DriverHearsWhyTheRestIsNotTaken) {
  KeepRow(*kept_, 1);
  kept_->Commit();
  Replay refused("again", kept_, 1, driver_.tell());
  refused.Refuse("the cluster failed");
  EXPECT_EQ(driver_.last(), Json({{"event", "feed_error"},
                                  {"feed", "again"},
                                  {"text", "the cluster failed"},
                                  {"timeout", false}}));
  Replay dropped("again", kept_, 1, driver_.tell());
  dropped.Drop();
  EXPECT_EQ(driver_.last(), kReplayed);
}

}  // namespace
}  // namespace hearth::partitions
