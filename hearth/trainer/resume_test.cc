// A training that was broken off ends as one that was not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/trainer/train_session_harness.h"

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

  // Leaves the files of iteration `last` and before, as a run that was killed after it.
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

TEST_F(ResumeTest, ABrokenRunEndsAsAnUnbrokenOneBitForBit) {
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

    Training by_hand = whole;  // -snapshot, in a run of its own
    by_hand.run = "another run";
    by_hand.snapshot = File(30, "solverstate");
    const Trained resumed = Train(by_hand);
    EXPECT_EQ(StartOf(resumed), 30);
    EXPECT_EQ(resumed.hashes, unbroken.hashes);
  }
}

TEST_F(ResumeTest, SnapshotsInHdf5AreTakenUpAsWell) {
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
  EXPECT_THAT(log_, HasSubstr("Passing over the snapshot of iteration 40: "));
}

TEST_F(ResumeTest, ValidationsOfAResumedRunAreThoseOfAnUnbrokenOne) {
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

TEST_F(ResumeTest, ADamagedSnapshotGivesWayToTheOneBeforeIt) {
  const Training whole = Whole(1, 1);
  const Trained unbroken = Train(whole);
  ForgetAfter(30);
  fs::resize_file(File(30, "solverstate"), fs::file_size(File(30, "solverstate")) / 2);
  log_.clear();
  const Trained recovered = TrainAgain(whole);
  EXPECT_EQ(StartOf(recovered), 20);
  EXPECT_EQ(recovered.hashes, unbroken.hashes);
  EXPECT_THAT(log_, HasSubstr("Passing over the snapshot of iteration 30: "));
}

// A kill between two of the three files.
TEST_F(ResumeTest, ASnapshotThatWasNotSealedIsNotTaken) {
  const Training whole = Whole(1, 1);
  Train(whole);
  ForgetAfter(20);
  fs::remove(File(20, "hearth.json"));
  EXPECT_EQ(StartOf(TrainAgain(whole)), 10);
}

TEST_F(ResumeTest, SnapshotsOfAnotherRunAreNotTaken) {
  Training whole = Whole(1, 1);
  whole.run = "yesterday's";
  const Trained unbroken = Train(whole);
  fs::remove(folder_.path("final.caffemodel"));
  whole.run = "today's";
  const Trained again = TrainAgain(whole);
  EXPECT_EQ(StartOf(again), 0);
  EXPECT_EQ(again.hashes, unbroken.hashes);
  EXPECT_THAT(log_, HasSubstr("of this run yet: it begins again"));
}

TEST_F(ResumeTest, ACaffeSnapshotGoesOnAtTheStartOfAnEpochAndSaysSo) {
  const Training whole = Whole(1, 1);
  Train(whole);
  Training rest = whole;
  rest.snapshot = File(20, "solverstate");
  fs::remove(File(20, "hearth.json"));
  log_.clear();
  EXPECT_EQ(StartOf(Train(rest)), 20);
  EXPECT_THAT(log_, HasSubstr("has no seal, as Caffe writes it: the feed begins an epoch"));
}

TEST_F(ResumeTest, AnotherNumberOfRanksIsToldOf) {
  Train(Whole(2, 1));
  Training rest = Whole(1, 1);
  rest.snapshot = File(20, "solverstate");
  EXPECT_EQ(StartOf(Train(rest)), 20);
  EXPECT_THAT(log_, HasSubstr("was made by 2 ranks, these are 1: its epoch begins again"));
}

TEST_F(ResumeTest, WithoutOneWholeSnapshotTheErrorNamesTheDamage) {
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
