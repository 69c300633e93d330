#include "hearth/feed/row_count.h"

#include <gmock/gmock.h>

#include <map>

#include "hearth/feed/ledger.h"
#include "hearth/feed/testing/task_testing.h"

namespace hearth::feed {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Json = nlohmann::json;

class OfFeed : public Partition {
 public:
  OfFeed(int index, int64_t claim) : Partition("f", index, claim) {}
  std::optional<Batch> Read() override { return std::nullopt; }
  void Settle(int64_t /*count*/) override {}
  void Refuse(const std::string& /*reason*/) override {}
  void Drop() override {}
  void Lose() override {}
};

// Tests with several nodes that report their counts to one driver's ledger.
class RowCountTest : public ::testing::Test {
 protected:
  void SetUp() override { ledger_.Open("f"); }

  RowCount& Node(int rank) {
    return nodes_.try_emplace(rank, [this, rank](const Json& event) { ledger_.Note(rank, event); })
        .first->second;
  }

  std::vector<Json> Claim(int rank, const Partition& partition) {
    return ledger_.Note(rank, Event("claim", partition));
  }

  std::vector<Json> End(int rank, const Partition& partition, const std::string& state) {
    Json event = Event("claim_end", partition);
    event.update({{"batches", 1}, {"hash", 1}, {"rows", partition.taken.load()}, {"state", state}});
    return ledger_.Note(rank, event);
  }

  static Json Event(const std::string& name, const Partition& partition) {
    return {{"event", name},
            {"feed", "f"},
            {"partition", partition.index()},
            {"claim", partition.claim()}};
  }

  Ledger ledger_;
  std::map<int, RowCount> nodes_;
};

TEST_F(RowCountTest, PartitionIsSafeWhenAllItsRowsWereTakenBeforeACommit) {
  RowCount& node = Node(0);
  OfFeed first(1, 1), second(2, 2);
  Claim(0, first);
  Claim(0, second);
  node.Take(first, 10);
  node.Commit();
  EXPECT_THAT(ledger_.Safe("f"), IsEmpty());  // the partition's end is not known yet
  node.Complete(first);
  End(0, first, "taken");
  EXPECT_THAT(ledger_.Safe("f"), ElementsAre(1));
  node.Take(second, 5);
  node.Complete(second);
  End(0, second, "taken");
  EXPECT_THAT(ledger_.Safe("f"), ElementsAre(1));
  EXPECT_EQ(ledger_.Taken("f"), 15);
  node.Commit();
  EXPECT_THAT(ledger_.Safe("f"), ElementsAre(1, 2));
  ledger_.Close("f");
  node.Commit();
  EXPECT_EQ(ledger_.Taken("f"), 0);
}

TEST_F(RowCountTest, PartitionTakenByTwoNodesIsSafeWhenBothCommit) {
  OfFeed first(3, 1), second(3, 1);
  ASSERT_EQ(Claim(0, first).size(), 1u);
  EXPECT_THAT(Claim(1, second), IsEmpty());  // the second attempt waits
  Node(0).Take(first, 10);
  Node(0).Complete(first);
  const auto answers = End(0, first, "broken");
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].at("to"), 1);
  EXPECT_EQ(answers[0].at("rows"), 10);
  second.taken = 10;
  Node(1).Take(second, 5);
  Node(1).Complete(second);
  End(1, second, "taken");
  Node(1).Commit();
  EXPECT_THAT(ledger_.Safe("f"), IsEmpty());
  Node(0).Commit();
  EXPECT_THAT(ledger_.Safe("f"), ElementsAre(3));
  EXPECT_EQ(ledger_.Taken("f"), 15);
}

TEST_F(RowCountTest, RowsTakenAfterACommitAreNotSafe) {
  OfFeed first(1, 1);
  Claim(0, first);
  Node(0).Take(first, 10);
  Node(0).Commit();
  Node(0).Take(first, 1);
  Node(0).Complete(first);
  End(0, first, "taken");
  EXPECT_THAT(ledger_.Safe("f"), IsEmpty());
}

TEST_F(RowCountTest, CommitWithACountMakesOnlyTheFirstRowsSafe) {
  RowCount& node = Node(0);
  OfFeed first(1, 1), second(2, 2);
  for (OfFeed* each : {&first, &second}) {
    Claim(0, *each);
    node.Take(*each, 10);
    node.Complete(*each);
    End(0, *each, "taken");
  }
  EXPECT_EQ(node.taken(), 20);
  node.Commit(9);
  EXPECT_THAT(ledger_.Safe("f"), IsEmpty());
  node.Commit(19);
  EXPECT_THAT(ledger_.Safe("f"), ElementsAre(1));
  node.Commit(5);  // has no effect
  node.Commit(1000);
  EXPECT_THAT(ledger_.Safe("f"), ElementsAre(1, 2));
}

TEST(RowCountEvents, RowsAreReportedPeriodicallyAndAtThePartitionsEnd) {
  RecordedMessages driver;
  RowCount count(driver.send());
  OfFeed partition(1, 1);
  count.Wait(std::chrono::milliseconds(250));
  count.Wait(std::chrono::milliseconds(500));
  for (int i = 0; i < 1000; ++i) count.Take(partition, 1);
  const auto answers = driver.all("rows");
  ASSERT_GE(answers.size(), 1u);
  EXPECT_LT(answers.size(), 20u);
  EXPECT_EQ(answers[0], Json({{"event", "rows"},
                              {"feed", "f"},
                              {"partition", 1},
                              {"rows", 1},
                              {"taken", 1},
                              {"waited_s", 0.75}}));
  count.Complete(partition);
  EXPECT_EQ(driver.all("rows").back().at("rows"), 1000);
}

TEST_F(RowCountTest, ACommitCountsOnlyRowsTakenBefore) {
  OfFeed first(1, 1);
  Claim(0, first);
  Node(0).Commit(1000);
  Node(0).Take(first, 10);
  Node(0).Complete(first);
  End(0, first, "taken");
  EXPECT_THAT(ledger_.Safe("f"), IsEmpty());
  Node(0).Commit();
  EXPECT_THAT(ledger_.Safe("f"), ElementsAre(1));
}

TEST_F(RowCountTest, APartitionWithoutRowsNeedsNoCommit) {
  OfFeed empty(1, 1);
  Claim(0, empty);
  Node(0).Complete(empty);
  End(0, empty, "taken");
  EXPECT_THAT(ledger_.Safe("f"), ElementsAre(1));
}

TEST(RowCountEvents, SafePartitionsOfOneCommitAreOneEvent) {
  RecordedMessages driver;
  RowCount count(driver.send());
  OfFeed first(1, 4), second(2, 5);
  for (OfFeed* each : {&first, &second}) {
    count.Take(*each, 3);
    count.Complete(*each);
  }
  EXPECT_TRUE(driver.all("safe").empty());
  count.Commit();
  count.Commit();
  const auto events = driver.all("safe");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].at("partitions"), Json::parse("[[1, 4], [2, 5]]"));
}

}  // namespace
}  // namespace hearth::feed
