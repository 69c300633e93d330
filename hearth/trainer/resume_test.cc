// Tests that an interrupted and resumed training ends with the same bits as an uninterrupted one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/sha256.h"
#include "hearth/storage/file.h"
#include "hearth/trainer/testing/train_session_testing.h"

namespace hearth::trainer {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ResumeTest : public TrainSessionFixture {
 protected:
  ResumeTest() {
    log::SetSink([this](const log::Record& record) { log_ += std::string(record.text) + "\n"; });
  }
  ~ResumeTest() override { log::SetSink({}); }

  // 40 iterations in shuffled epochs of different lengths, with dropout, snapshots at 10, 20, ...
  static Training Whole(int processes, int devices) {
    Training whole;
    whole.processes = processes;
    whole.devices = devices;
    whole.max_iter = 40;
    whole.run = "this run";
    whole.solver = "snapshot: 10 average_loss: 3 iter_size: 2";
    whole.net = TestNet(4);
    whole.net.insert(whole.net.find("layer { name: \"relu1\""),
                     "layer { name: \"drop\" type: \"Dropout\" bottom: \"ip1\" top: \"ip1\" }\n");
    for (int p = 0; p < processes; ++p) {
      whole.train.push_back({Numbers(int64_t{100} * p, int64_t{100} * p + 50 + p)});
    }
    return whole;
  }

  // Removes the files written after iteration `last`, as if the run had been killed then.
  void ForgetAfter(int last) {
    for (int iteration = 10; iteration <= 40; iteration += 10) {
      if (iteration > last) Remove(iteration);
    }
    fs::remove(folder_.path("final.caffemodel"));
  }
  void Remove(int iteration) {
    for (const char* extension :
         {"caffemodel", "solverstate", "hearth.json", "caffemodel.h5", "solverstate.h5"}) {
      fs::remove(File(iteration, extension));
    }
  }
  std::string File(int iteration, const std::string& extension) {
    return folder_.path(fmt::format("tiny_iter_{}.{}", iteration, extension));
  }
  static int64_t StartOf(const Trained& trained) {
    return trained.events.front().value("iteration", -1);
  }

  std::string log_;
};

TEST_F(ResumeTest, AResumedRunEqualsAnUninterruptedOneBitForBit) {
  for (const auto& [processes, devices] : {std::pair{1, 1}, {1, 2}, {2, 1}, {2, 2}}) {
    SCOPED_TRACE(fmt::format("{} processes x {} devices", processes, devices));
    const Training whole = Whole(processes, devices);
    const Trained unbroken = Train(whole);
    EXPECT_EQ(StartOf(unbroken), 0);

    ForgetAfter(20);
    const Trained recovered = TrainAgain(whole);
    EXPECT_EQ(StartOf(recovered), 20);
    EXPECT_EQ(recovered.hashes, unbroken.hashes);
    ExpectSameTraining(unbroken, recovered, 0);

    Training by_hand = whole;  // resumes with -snapshot, in another run
    by_hand.run = "another run";
    by_hand.snapshot = File(30, "solverstate");
    const Trained resumed = Train(by_hand);
    EXPECT_EQ(StartOf(resumed), 30);
    EXPECT_EQ(resumed.hashes, unbroken.hashes);
  }
}

TEST_F(ResumeTest, RowsThatAreSentAgainInEachEpochResumeBitForBit) {
  for (const auto& [processes, devices] : {std::pair{1, 1}, {1, 2}, {2, 1}, {2, 2}}) {
    SCOPED_TRACE(fmt::format("{} processes x {} devices", processes, devices));
    Training whole = Whole(processes, devices);
    whole.streamed = true;
    const Trained unbroken = Train(whole);
    for (const int last : {10, 20, 30}) {  // each iteration is in a different epoch
      ForgetAfter(last);
      const Trained recovered = TrainAgain(whole);
      EXPECT_EQ(StartOf(recovered), last);
      EXPECT_EQ(recovered.hashes, unbroken.hashes);
      ExpectSameTraining(unbroken, recovered, 0);
    }
    Training kept = whole;
    kept.streamed = false;
    EXPECT_NE(Train(kept).hashes, unbroken.hashes) << "spooled rows have another order";
  }
}

TEST_F(ResumeTest, DifferentStreamedRowsRestartTheEpoch) {
  Training whole = Whole(2, 1);
  whole.streamed = true;
  Train(whole);
  ForgetAfter(20);
  whole.train[1][0].pop_back();
  TrainAgain(whole);
  EXPECT_THAT(log_, HasSubstr("rank 1 on host localhost reads other rows than before"));

  ForgetAfter(10);
  log_.clear();
  whole.streamed = false;
  TrainAgain(whole);
  EXPECT_THAT(log_, HasSubstr("begins again for all ranks")) << "the rows had another order";
}

// A snapshot contains the average of all ranks' weights, even between two regular averages.
TEST_F(ResumeTest, LocalSgdResumesBitForBit) {
  Training whole = Whole(2, 1);
  whole.sync_every = 7;
  const Trained unbroken = Train(whole);
  ForgetAfter(20);
  const Trained recovered = TrainAgain(whole);
  EXPECT_EQ(StartOf(recovered), 20);
  EXPECT_EQ(recovered.hashes, unbroken.hashes);
  ExpectSameTraining(unbroken, recovered, 0);
}

TEST_F(ResumeTest, ResumesFromHdf5Snapshots) {
  Training whole = Whole(2, 1);
  whole.hdf5 = true;
  const Trained unbroken = Train(whole);
  ForgetAfter(20);
  fs::remove(folder_.path("final.caffemodel.h5"));
  const Trained recovered = TrainAgain(whole);
  EXPECT_EQ(StartOf(recovered), 20);
  EXPECT_EQ(recovered.hashes, unbroken.hashes);
  ExpectSameTraining(unbroken, recovered, 0);

  fs::resize_file(File(40, "solverstate.h5"), fs::file_size(File(40, "solverstate.h5")) / 2);
  EXPECT_EQ(StartOf(TrainAgain(whole)), 30);
  EXPECT_THAT(log_, HasSubstr("Skipping the snapshot of iteration 40: "));
}

TEST_F(ResumeTest, ValidationsOfAResumedRunEqualThoseOfAnUninterruptedOne) {
  Training whole = Whole(2, 1);
  whole.solver += " test_interval: 4 test_iter: 2";
  whole.test = {{Numbers(1000, 1031)}, {Numbers(2000, 2013)}};
  const auto unbroken = ValidationsIn(Train(whole));
  ForgetAfter(20);
  const auto recovered = ValidationsIn(TrainAgain(whole));
  ASSERT_EQ(unbroken.size(), 10u);
  ASSERT_EQ(recovered.size(), 6u);  // after iterations 20, 24, ... 40
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(recovered[i], unbroken[i + 4]);
}

TEST_F(ResumeTest, FallsBackToTheSnapshotBeforeADamagedOne) {
  const Training whole = Whole(1, 1);
  const Trained unbroken = Train(whole);
  ForgetAfter(30);
  fs::resize_file(File(30, "solverstate"), fs::file_size(File(30, "solverstate")) / 2);
  log_.clear();
  const Trained recovered = TrainAgain(whole);
  EXPECT_EQ(StartOf(recovered), 20);
  EXPECT_EQ(recovered.hashes, unbroken.hashes);
  EXPECT_THAT(log_, HasSubstr("Skipping the snapshot of iteration 30: "));
}

// Simulates a run that was killed before the last of the three files was written.
TEST_F(ResumeTest, IgnoresASnapshotWithoutASeal) {
  const Training whole = Whole(1, 1);
  Train(whole);
  ForgetAfter(20);
  fs::remove(File(20, "hearth.json"));
  EXPECT_EQ(StartOf(TrainAgain(whole)), 10);
}

TEST_F(ResumeTest, IgnoresSnapshotsOfAnotherRun) {
  Training whole = Whole(1, 1);
  whole.run = "yesterday's";
  const Trained unbroken = Train(whole);
  fs::remove(folder_.path("final.caffemodel"));
  whole.run = "today's";
  const Trained again = TrainAgain(whole);
  EXPECT_EQ(StartOf(again), 0);
  EXPECT_EQ(again.hashes, unbroken.hashes);
  EXPECT_THAT(log_, HasSubstr("yet: training starts where the run began"));
}

TEST_F(ResumeTest, ACaffeSnapshotResumesAtTheStartOfAnEpochWithAWarning) {
  const Training whole = Whole(1, 1);
  Train(whole);
  Training rest = whole;
  rest.snapshot = File(20, "solverstate");
  fs::remove(File(20, "hearth.json"));
  log_.clear();
  EXPECT_EQ(StartOf(Train(rest)), 20);
  EXPECT_THAT(
      log_,
      HasSubstr("has no seal (Caffe writes none): the feed starts at the beginning of an epoch"));
}

TEST_F(ResumeTest, WarnsOfAnotherNumberOfRanks) {
  Train(Whole(2, 1));
  Training rest = Whole(1, 1);
  rest.snapshot = File(20, "solverstate");
  EXPECT_EQ(StartOf(Train(rest)), 20);
  EXPECT_THAT(log_, HasSubstr("was made by 2 ranks, but this run has 1: its epoch begins again"));
}

TEST_F(ResumeTest, WarnsOfAnotherBatchSize) {
  Training whole = Whole(1, 1);
  Train(whole);
  whole.net = TestNet(5);
  whole.snapshot = File(20, "solverstate");
  EXPECT_EQ(StartOf(Train(whole)), 20);
  EXPECT_THAT(log_,
              HasSubstr("with a batch_size of 4, but this run has 5: its epoch begins again"));
}

// Trainings in which ranks 0 and 1 have 50 and 51 rows in an epoch of seven iterations. There are
// snapshots at iteration 5, in the first epoch, and at 10, 15, ...
class OtherRowsTest : public ResumeTest {
 protected:
  static Training Plain(int processes, int devices) {
    Training plain = Whole(processes, devices);
    plain.solver = "snapshot: 5 average_loss: 3 iter_size: 2";
    return plain;
  }
  void KeepOnly(int iteration) {
    for (int i = 5; i <= 40; i += 5) {
      if (i != iteration) Remove(i);
    }
    fs::remove(folder_.path("final.caffemodel"));
    log_.clear();
  }
  // Resumes from `snapshot` with other rows. `said` must be the only warning about the changed
  // rows.
  Trained Resume(Training training, int snapshot, const std::string& said) {
    KeepOnly(snapshot);
    const Trained trained = TrainAgain(std::move(training));
    EXPECT_EQ(StartOf(trained), snapshot);
    EXPECT_THAT(log_, HasSubstr(said));
    EXPECT_EQ(log_.find("reads other rows"), log_.rfind("reads other rows")) << log_;
    return trained;
  }
};

TEST_F(OtherRowsTest, AreNoticedInEveryEpochAndRestartIt) {
  for (const auto& [snapshot, epoch] : {std::pair{5, 0}, {10, 1}, {20, 2}}) {
    SCOPED_TRACE(snapshot);
    Training training = Plain(2, 1);
    Train(training);
    std::swap(training.train[1][0][2], training.train[1][0][3]);
    Resume(training, snapshot,
           fmt::format("rank 1 on host localhost reads other rows than before the snapshot of "
                       "iteration {}: the first {} rows of its stream have the hash",
                       snapshot, epoch == 0 ? 40 : 51));
    EXPECT_THAT(log_, HasSubstr(fmt::format("(1 of 2 ranks do); epoch {} begins again", epoch)));
  }
}

TEST_F(OtherRowsTest, OnAllRanksAreOneWarning) {
  Training training = Plain(2, 2);
  Train(training);
  for (Batches& rows : training.train) rows[0].erase(rows[0].begin() + 20, rows[0].end());
  Resume(training, 5,
         "rank 0 on host localhost reads other rows than before the snapshot of "
         "iteration 5: 20 rows instead of ");
  EXPECT_THAT(log_, HasSubstr("(4 of 4 ranks do); epoch 1 begins again for all ranks"));
}

// A state without a position in the feed also restarts epoch 0 with the snapshot's weights, so the
// results must be equal.
TEST_F(OtherRowsTest, AreTrainedOnceEachFromTheStartOfTheEpoch) {
  Training training = Plain(2, 1);
  Train(training);
  std::swap(training.train[0][0][0], training.train[0][0][1]);
  const Trained restarted = Resume(training, 5, "rank 0 ");
  training.run = "another";
  training.snapshot = File(5, "solverstate");
  training.max_iter = 40;
  fs::remove(File(5, "hearth.json"));
  const Trained expected = Train(training);
  EXPECT_EQ(restarted.hashes, expected.hashes);
}

TEST_F(OtherRowsTest, BehindTheSnapshotsPositionAreIgnored) {
  Training training = Plain(2, 1);
  Train(training);
  KeepOnly(5);
  training.train[1][0].back() = 7777;  // the last of 51 rows, of which 40 had been read
  TrainAgain(training);
  EXPECT_EQ(log_.find("reads other rows"), std::string::npos) << log_;
}

TEST_F(OtherRowsTest, AreAnErrorUnlessTheJobAllowsThem) {
  Training training = Plain(1, 1);
  Train(training);
  KeepOnly(10);
  training.train[0][0].back() = 7777;
  training.on_other_rows = "fail";
  EXPECT_THAT([&] { TrainAgain(training); },
              ::testing::ThrowsMessage<Error>(HasSubstr("-onOtherRows restartEpoch")));
}

TEST_F(OtherRowsTest, AreReportedWithTheVersionsOfTheirTables) {
  Training training = Plain(1, 1);
  training.datasets = "train: Delta version 3";
  Train(training);
  KeepOnly(10);
  training.train[0][0].back() = 7777;
  training.datasets = "train: Delta version 4";
  TrainAgain(training);
  EXPECT_THAT(log_, HasSubstr("the snapshot was made with train: Delta version 3, but this run has "
                              "train: Delta version 4"));
}

// The row hashes in seals of older and newer versions must not be trusted.
TEST_F(OtherRowsTest, ThatCannotBeComparedCountAsDifferent) {
  Training training = Plain(2, 1);
  Train(training);
  const std::string whole = storage::ReadFile(File(5, "hearth.json"));
  const auto go_on = [&](const std::function<void(nlohmann::json&)>& change) {
    KeepOnly(5);
    auto seal = nlohmann::json::parse(whole);
    seal.erase("sha256");
    change(seal);
    seal["sha256"] = Sha256Hex(seal.dump());
    std::ofstream(File(5, "hearth.json")) << seal.dump();
    EXPECT_EQ(StartOf(TrainAgain(training)), 5);
  };
  go_on([](nlohmann::json& seal) { seal.erase("row_hash"); });
  EXPECT_THAT(
      log_,
      HasSubstr(
          "with those before the snapshot of iteration 5: " + File(5, "hearth.json") +
          " has row hashes of version 1, but this version of Hearth computes version 2; epoch 0 "
          "begins again for all ranks"));
  go_on([](nlohmann::json& seal) { seal["row_hash"] = 99; });
  EXPECT_THAT(
      log_,
      HasSubstr(
          "has row hashes of version 99, but this version of Hearth computes version 2; epoch 0"));
  go_on([](nlohmann::json& seal) { seal.erase("rows"); });
  EXPECT_THAT(log_, HasSubstr("has the row hashes of 0 ranks instead of 2; epoch 0 begins again"));
  training.on_other_rows = "fail";
  EXPECT_THAT([&] { go_on([](nlohmann::json& seal) { seal["row_hash"] = 99; }); },
              ::testing::ThrowsMessage<Error>(HasSubstr("-onOtherRows restartEpoch")));
}

// The hash does not depend on how a feeder divides rows into batches.
TEST_F(OtherRowsTest, InOtherBatchesAreEqual) {
  Training training = Plain(1, 2);
  const Trained unbroken = Train(training);
  for (const int snapshot : {5, 20}) {
    KeepOnly(snapshot);
    Training cut = training;
    cut.train[0] = {Numbers(0, 1), Numbers(1, 30), Numbers(30, 50)};
    const Trained resumed = TrainAgain(cut);
    EXPECT_EQ(log_.find("reads other rows"), std::string::npos) << log_;
    EXPECT_EQ(resumed.hashes, unbroken.hashes);
    Train(training);
  }
}

TEST_F(ResumeTest, WithoutAnyIntactSnapshotTheErrorNamesTheDamage) {
  const Training whole = Whole(1, 1);
  Train(whole);
  Training rest = whole;
  rest.snapshot = File(10, "solverstate");
  std::ofstream(File(10, "caffemodel"), std::ios::app) << "x";
  EXPECT_THAT([&] { Train(rest); },
              ::testing::ThrowsMessage<Error>(HasSubstr("tiny_iter_10.caffemodel has ")));
}

}  // namespace
}  // namespace hearth::trainer
