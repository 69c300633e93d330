#include "hearth/feed/ledger.h"

#include <gmock/gmock.h>

#include "hearth/base/testing/error_testing.h"

namespace hearth::feed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

class LedgerTest : public ::testing::Test {
 protected:
  void SetUp() override { ledger_.Open("f"); }

  std::vector<Json> Claim(int rank, int claim, int partition = 3, const std::string& feed = "f") {
    return ledger_.Note(
        rank, {{"event", "claim"}, {"feed", feed}, {"partition", partition}, {"claim", claim}});
  }

  std::vector<Json> End(int rank, int claim, const std::string& state, int64_t rows,
                        uint64_t hash = 7) {
    return ledger_.Note(rank, {{"event", "claim_end"},
                               {"feed", "f"},
                               {"partition", 3},
                               {"claim", claim},
                               {"state", state},
                               {"batches", rows / 10},
                               {"hash", hash},
                               {"rows", rows}});
  }

  void SafeAt(int rank, int claim, int partition = 3) {
    ledger_.Note(rank, {{"event", "safe"},
                        {"feed", "f"},
                        {"partitions", Json::array({Json::array({partition, claim})})}});
  }

  void Rows(int rank, int partition, int64_t rows) {
    ledger_.Note(rank,
                 {{"event", "rows"}, {"feed", "f"}, {"partition", partition}, {"rows", rows}});
  }

  Ledger ledger_;
};

std::vector<std::string> AnswersIn(const std::vector<Json>& messages) {
  std::vector<std::string> answers;
  for (const Json& message : messages) answers.push_back(message.at("answer"));
  return answers;
}

TEST_F(LedgerTest, FirstAttemptStartsAndOthersWaitUntilItEnds) {
  const auto first = Claim(0, 1);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0], Json({{"op", "claim"},
                            {"to", 0},
                            {"claim", 1},
                            {"answer", "begin"},
                            {"feed", "f"},
                            {"partition", 3},
                            {"batches", 0},
                            {"hash", 0},
                            {"rows", 0},
                            {"whole", false}}));
  EXPECT_THAT(Claim(1, 1), IsEmpty());
  const auto answers = End(0, 1, "taken", 20);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0], Json({{"op", "claim"}, {"to", 1}, {"claim", 1}, {"answer", "taken"}}));
  EXPECT_THAT(AnswersIn(Claim(0, 2)), ElementsAre("taken"));
}

TEST_F(LedgerTest, NextAttemptContinuesWhereABrokenOneStopped) {
  Claim(0, 1);
  Claim(1, 5);
  const uint64_t hash = 0xfedcba9876543210;  // exceeds a signed 64-bit number
  const auto answers = End(0, 1, "broken", 20, hash);
  ASSERT_THAT(AnswersIn(answers), ElementsAre("begin"));
  EXPECT_EQ(answers[0].at("to"), 1);
  EXPECT_EQ(answers[0].at("claim"), 5);
  EXPECT_EQ(answers[0].at("batches"), 2);
  EXPECT_EQ(answers[0].at("hash"), hash);
  EXPECT_EQ(answers[0].at("rows"), 20);
}

TEST_F(LedgerTest, EndOfAnAttemptThatIsNotTheOwnerChangesNothing) {
  Claim(0, 1);
  Claim(1, 5);
  EXPECT_THAT(End(1, 5, "taken", 20), IsEmpty());
  EXPECT_THAT(ledger_.Unfinished("f"), ElementsAre(3));
}

TEST_F(LedgerTest, WaitingAttemptsAreNotifiedOfProgress) {
  Claim(0, 1);
  Claim(1, 5);
  const auto answers =
      ledger_.Note(0, {{"event", "rows"}, {"feed", "f"}, {"partition", 3}, {"rows", 4}});
  ASSERT_THAT(AnswersIn(answers), ElementsAre("wait"));
  EXPECT_EQ(answers[0].at("to"), 1);
}

TEST_F(LedgerTest, AttemptsOfAnEndedJobAreRejected) {
  EXPECT_THAT(AnswersIn(Claim(0, 1, 3, "another")), ElementsAre("over"));
  Claim(0, 1);
  ledger_.Close("f");
  EXPECT_THAT(AnswersIn(Claim(0, 2)), ElementsAre("over"));
  EXPECT_THAT(End(0, 1, "taken", 20), IsEmpty());
  EXPECT_EQ(ledger_.Taken("f"), 0);
}

TEST_F(LedgerTest, TakenRowsIncludePartitionsAndReplays) {
  Rows(0, 3, 10);
  Rows(0, 3, 12);
  Rows(0, -1, 5);
  Rows(1, -1, 7);
  EXPECT_EQ(ledger_.Taken("f"), 24);
}

TEST_F(LedgerTest, PartitionIsSafeWhenAllRowsAreTakenAndCommitted) {
  Claim(0, 1);
  Claim(1, 1);
  End(0, 1, "broken", 10);
  End(1, 1, "taken", 20);
  SafeAt(1, 1);
  EXPECT_THAT(ledger_.Safe("f"), IsEmpty());
  SafeAt(0, 1);
  EXPECT_THAT(ledger_.Safe("f"), ElementsAre(3));
}

TEST_F(LedgerTest, CountsACommitBeforeTheEndMessage) {
  Claim(0, 1);
  SafeAt(0, 1);
  EXPECT_THAT(ledger_.Safe("f"), IsEmpty());
  End(0, 1, "taken", 20);
  EXPECT_THAT(ledger_.Safe("f"), ElementsAre(3));
}

TEST_F(LedgerTest, AttemptWithoutDeliveredRowsNeedsNoCommit) {
  Claim(0, 1);
  End(0, 1, "broken", 0);
  Claim(1, 1);
  End(1, 1, "taken", 20);
  SafeAt(1, 1);
  EXPECT_THAT(ledger_.Safe("f"), ElementsAre(3));
}

TEST_F(LedgerTest, TerminatedPartitionIsNotSafe) {
  Claim(0, 1);
  End(0, 1, "terminated", 20);
  SafeAt(0, 1);
  EXPECT_THAT(ledger_.Safe("f"), IsEmpty());
  EXPECT_THAT(ledger_.Unfinished("f"), IsEmpty());
}

TEST_F(LedgerTest, PartlyDeliveredPartitionIsUnfinished) {
  EXPECT_THAT(ledger_.Unfinished("f"), IsEmpty());
  Claim(0, 1);
  EXPECT_THAT(ledger_.Unfinished("f"), ElementsAre(3));
  End(0, 1, "broken", 20);
  EXPECT_THAT(ledger_.Unfinished("f"), ElementsAre(3));
  Claim(0, 2);
  End(0, 2, "taken", 40);
  EXPECT_THAT(ledger_.Unfinished("f"), IsEmpty());
}

TEST_F(LedgerTest, RestartSendsUnsafePartitionsAndComparesSafeOnes) {
  Claim(0, 1);
  End(0, 1, "taken", 20);
  SafeAt(0, 1);
  Claim(0, 2, 4);
  ledger_.Restart();
  EXPECT_THAT(ledger_.Safe("f"), ElementsAre(3));
  const auto again = Claim(0, 1);
  EXPECT_EQ(again.at(0).at("whole"), true);
  EXPECT_EQ(again.at(0).at("batches"), 2);
  EXPECT_THAT(ledger_.Unfinished("f"), IsEmpty());
  const auto claimed_again = Claim(0, 2, 4);
  EXPECT_EQ(claimed_again.at(0).at("whole"), false);
  EXPECT_EQ(claimed_again.at(0).at("batches"), 0);
}

TEST_F(LedgerTest, EventWithoutAFieldIsAnErrorThatNamesIt) {
  const Error error = Thrown([&] { ledger_.Note(2, {{"event", "rows"}}); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("node 2 sent an invalid feed event"));
  EXPECT_THAT(error.message(), HasSubstr("'feed' not found"));
  EXPECT_EQ(CodeOf([&] {
              ledger_.Note(0, {{"event", "claim"}, {"feed", "f"}});
            }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf([&] { ledger_.Note(0, Json::array()); }), ErrorCode::kInvalidArgument);
}

TEST_F(LedgerTest, WaitingAttemptsGetTheirTurnInOrderOfArrival) {
  Claim(0, 1);
  Claim(2, 7);
  Claim(1, 5);
  const auto second = End(0, 1, "broken", 10);
  ASSERT_THAT(AnswersIn(second), ElementsAre("begin"));
  EXPECT_EQ(second[0].at("to"), 2);
  const auto third = End(2, 7, "broken", 30);
  ASSERT_THAT(AnswersIn(third), ElementsAre("begin"));
  EXPECT_EQ(third[0].at("to"), 1);
  EXPECT_EQ(third[0].at("rows"), 30);
  EXPECT_EQ(third[0].at("batches"), 3);
}

TEST_F(LedgerTest, EachWaitingAttemptIsNotifiedOfTheEnd) {
  Claim(0, 1);
  Claim(1, 5);
  Claim(2, 7);
  const auto answers = End(0, 1, "terminated", 10);
  EXPECT_THAT(AnswersIn(answers), ElementsAre("terminated", "terminated"));
  EXPECT_EQ(answers[0].at("to"), 1);
  EXPECT_EQ(answers[1].at("to"), 2);
  EXPECT_THAT(AnswersIn(Claim(3, 1)), ElementsAre("terminated"));
}

TEST_F(LedgerTest, ADoubledEndChangesNothing) {
  Claim(0, 1);
  End(0, 1, "taken", 20);
  EXPECT_THAT(End(0, 1, "broken", 0), IsEmpty());
  SafeAt(0, 1);
  EXPECT_THAT(ledger_.Safe("f"), ElementsAre(3));
}

TEST_F(LedgerTest, PartitionsDoNotWaitForEachOther) {
  EXPECT_THAT(AnswersIn(Claim(0, 1, 3)), ElementsAre("begin"));
  EXPECT_THAT(AnswersIn(Claim(0, 2, 4)), ElementsAre("begin"));
  EXPECT_THAT(ledger_.Unfinished("f"), ElementsAre(3, 4));
}

TEST_F(LedgerTest, JobsOfDifferentNamesDoNotMix) {
  ledger_.Open("g");
  Claim(0, 1);
  EXPECT_THAT(AnswersIn(Claim(1, 1, 3, "g")), ElementsAre("begin"));
  Rows(0, 3, 10);
  EXPECT_EQ(ledger_.Taken("g"), 0);
  ledger_.Close("g");
  EXPECT_THAT(ledger_.Unfinished("f"), ElementsAre(3));
  EXPECT_THAT(ledger_.Unfinished("g"), IsEmpty());
}

TEST_F(LedgerTest, AReopenedJobHasNoPartitions) {
  Claim(0, 1);
  Rows(0, 3, 20);
  End(0, 1, "taken", 20);
  SafeAt(0, 1);
  ledger_.Close("f");
  ledger_.Open("f");
  EXPECT_THAT(ledger_.Safe("f"), IsEmpty());
  EXPECT_EQ(ledger_.Taken("f"), 0);
  const auto again = Claim(0, 1);
  EXPECT_EQ(again.at(0).at("rows"), 0);
  EXPECT_EQ(again.at(0).at("whole"), false);
}

TEST_F(LedgerTest, ACommitOfAnotherNodesAttemptDoesNotCount) {
  Claim(0, 1);
  End(0, 1, "taken", 20);
  SafeAt(1, 1);
  SafeAt(0, 2);
  SafeAt(0, 1, 99);
  EXPECT_THAT(ledger_.Safe("f"), IsEmpty());
  SafeAt(0, 1);
  SafeAt(0, 1);
  EXPECT_THAT(ledger_.Safe("f"), ElementsAre(3));
}

TEST_F(LedgerTest, APartitionWithoutRowsIsSafeAtItsEnd) {
  Claim(0, 1);
  End(0, 1, "taken", 0);
  EXPECT_THAT(ledger_.Safe("f"), ElementsAre(3));
}

TEST_F(LedgerTest, ASafePartitionStaysSafeWhenItIsSentAgain) {
  Claim(0, 1);
  End(0, 1, "taken", 20);
  SafeAt(0, 1);
  for (const char* state : {"broken", "terminated"}) {
    ledger_.Restart();
    Claim(1, 4);
    EXPECT_THAT(Claim(2, 6), IsEmpty()) << "attempts before the restart no longer own it";
    End(1, 4, state, 20);
    EXPECT_THAT(ledger_.Safe("f"), ElementsAre(3));
  }
}

TEST_F(LedgerTest, RestartForgetsWaitingAttempts) {
  Claim(0, 1);
  Claim(1, 5);
  ledger_.Restart();
  EXPECT_THAT(ledger_.Unfinished("f"), IsEmpty());
  EXPECT_THAT(End(0, 1, "broken", 10), IsEmpty()) << "from a node that is gone";
  const auto again = Claim(0, 1);
  ASSERT_THAT(AnswersIn(again), ElementsAre("begin"));
  EXPECT_THAT(End(0, 1, "taken", 20), IsEmpty()) << "no attempt waits";
}

TEST_F(LedgerTest, UnknownEventsAndPartitionsAreIgnored) {
  EXPECT_THAT(ledger_.Note(0, {{"event", "of a later version"}, {"feed", "f"}}), IsEmpty());
  EXPECT_THAT(End(0, 1, "taken", 20), IsEmpty());
  EXPECT_THAT(ledger_.Safe("f"), IsEmpty());
  EXPECT_THAT(ledger_.Safe("unknown"), IsEmpty());
  EXPECT_THAT(ledger_.Unfinished("unknown"), IsEmpty());
  EXPECT_EQ(ledger_.Taken("unknown"), 0);
}

}  // namespace
}  // namespace hearth::feed
