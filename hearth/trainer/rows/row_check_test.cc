#include "hearth/trainer/rows/row_check.h"

#include <gmock/gmock.h>

#include <mutex>

#include "hearth/base/log.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/base/thread.h"
#include "hearth/batch/row_hash.h"

namespace hearth::trainer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A stream whose first `n` rows have the hash n * factor.
class FakeStream : public dataset::RowStream {
 public:
  FakeStream(int64_t rows, uint64_t factor) : rows_(rows), factor_(factor) {}
  Digest DigestOf(int64_t rows) override {
    const int64_t read = std::min(rows, rows_);
    return {read, static_cast<uint64_t>(read) * factor_};
  }
  Digest DigestUpTo(const dataset::Minibatch::Row& row) override { return DigestOf(row.index + 1); }
  void BeginAt(int64_t) override {}
  void Stop() override {}

 private:
  const int64_t rows_;
  const uint64_t factor_;
};

class RowCheckTest : public ::testing::Test {
 protected:
  // Runs `body` as each of two ranks, whose streams have 10 rows.
  template <typename Body>
  void RunRanks(const Job& job, uint64_t second_factor, Body body) {
    auto groups = collective::Group::ConnectThreads(2);
    std::vector<Thread> threads;
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back("rank", [&, rank] {
        const uint64_t factor = rank == 0 ? 3 : second_factor;
        RowCheck check(job, *groups[static_cast<size_t>(rank)],
                       std::make_shared<FakeStream>(10, factor));
        body(rank, check);
      });
    }
    for (Thread& thread : threads) thread.Join();
  }

  // A snapshot of the first epoch, after 4 and 6 rows of streams with the factors 3 and 5.
  static caffe::TrainingPosition Position() {
    caffe::TrainingPosition position;
    position.iteration = 20;
    position.ranks = 2;
    position.rows = {{4, 12}, {6, 30}};
    position.row_hash = batch::kRowHashVersion;
    position.seal = "m_iter_20.hearth.json";
    return position;
  }

  // Returns the results of both ranks; logged_ gets their warnings.
  std::vector<bool> Confirm(const Job& job, uint64_t second_factor,
                            const caffe::TrainingPosition& position) {
    std::mutex mutex;
    log::SetSink([&](const log::Record& record) {
      const std::lock_guard lock(mutex);
      if (record.level == log::Level::kWarning) logged_ += record.text;
    });
    std::vector<char> equal(2);
    RunRanks(job, second_factor, [&](int rank, RowCheck& check) {
      equal[static_cast<size_t>(rank)] = check.RowsMatch(position);
    });
    log::SetSink({});
    return {equal[0] != 0, equal[1] != 0};
  }

  std::string logged_;
};

TEST_F(RowCheckTest, AllRanksGatherTheRowsThatEachHasRead) {
  RunRanks({}, 5, [](int, RowCheck& check) {
    dataset::Minibatch last;
    last.rows = {{nullptr, 3}};
    const auto first = check.Gather(0, last);
    ASSERT_EQ(first.size(), 2u);
    EXPECT_EQ(first[0], (caffe::SealedRows{4, 12}));
    EXPECT_EQ(first[1], (caffe::SealedRows{4, 20}));
    const auto later = check.Gather(1, last);
    EXPECT_EQ(later[1], (caffe::SealedRows{10, 50})) << "later epochs read all rows";
  });
}

TEST_F(RowCheckTest, TheSameRowsAreConfirmed) {
  EXPECT_THAT(Confirm({}, 5, Position()), ::testing::ElementsAre(true, true));
  EXPECT_THAT(logged_, IsEmpty());
}

TEST_F(RowCheckTest, OtherRowsOfOneRankBeginTheEpochAgainOnAll) {
  Job job;
  job.host = "node7";
  EXPECT_THAT(Confirm(job, 6, Position()), ::testing::ElementsAre(false, false));
  EXPECT_THAT(logged_, AllOf(HasSubstr("rank 1 on host node7 reads other rows"),
                             HasSubstr("iteration 20"), HasSubstr("1 of 2 ranks do")));
}

TEST_F(RowCheckTest, ASealWithAnOlderHashCannotBeCompared) {
  caffe::TrainingPosition older = Position();
  --older.row_hash;
  EXPECT_THAT(Confirm({}, 5, older), ::testing::ElementsAre(false, false));
  EXPECT_THAT(logged_, HasSubstr(": m_iter_20.hearth.json has row hashes of version"));
}

// With a different number of ranks, the epoch begins again anyway.
TEST_F(RowCheckTest, AnotherNumberOfRanksIsNotCompared) {
  caffe::TrainingPosition other = Position();
  other.ranks = 3;
  EXPECT_THAT(Confirm({}, 6, other), ::testing::ElementsAre(true, true));
  EXPECT_THAT(logged_, IsEmpty());
}

}  // namespace
}  // namespace hearth::trainer
