#include "hearth/trainer/step/train_start.h"

#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <string>

#include "hearth/base/log.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/caffe/snapshot/snapshot.h"
#include "hearth/trainer/testing/solver_testing.h"
#include "hearth/trainer/testing/trainer_testing.h"

namespace hearth::trainer {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// Writes `notes` into the snapshots, as the trainer does.
class NotingObserver final : public caffe::SolverObserver {
 public:
  explicit NotingObserver(std::string notes) : notes_(std::move(notes)) {}
  void CompletePosition(caffe::TrainingPosition* position) const override {
    position->notes = notes_;
    position->batch_size = 12;
  }

 private:
  const std::string notes_;
};

class TrainStartTest : public ::testing::Test {
 protected:
  // Trains for two iterations of run "a run" and writes a snapshot with these notes.
  std::string WriteSnapshot(const std::string& notes) {
    NotingObserver observer(notes);
    caffe::SolverOptions options;
    options.observer = &observer;
    options.run = "a run";
    const auto solver = ConstantSolver(Prefix(), std::move(options));
    solver->Step(2);
    return solver->Snapshot().second;
  }
  std::string Prefix() const { return "snapshot_prefix: '" + folder_.path("dummy") + "' "; }
  // A solver whose initial weights differ from rank to rank.
  std::unique_ptr<caffe::Solver> SolverOf(int rank) const {
    return ConstantSolver(Prefix() + "random_seed: " + std::to_string(100 + rank));
  }
  static float WeightOf(caffe::Solver& solver) {
    return solver.net().layer("ip").blobs()[0]->data_ptr()[0];
  }
  Job JobOfRun(const std::string& run) const {
    Job job;
    job.run = run;
    return job;
  }
  // The validations that rank 0 restores from a snapshot.
  json ValidationsOf(const Job& job) {
    json validations = json::array();
    RunGroupThreads(1, [&](collective::Group& group) {
      const auto solver = SolverOf(0);
      TrainStart(job, group, *solver).Load(&validations);
    });
    return validations;
  }

  const TestFolder folder_;
};

TEST_F(TrainStartTest, AllRanksStartWithTheWeightsOfTheFirst) {
  const Job job;
  RunGroupThreads(3, [&](collective::Group& group) {
    const auto solver = SolverOf(group.rank()), first = SolverOf(0);
    json validations = json::array();
    TrainStart start(job, group, *solver);
    EXPECT_EQ(start.Load(&validations), std::nullopt);
    EXPECT_EQ(WeightOf(*solver), WeightOf(*first));
    EXPECT_EQ(validations, json::array());
  });
}

// Only rank 0 reads the snapshot, because other hosts may not have the files.
TEST_F(TrainStartTest, WeightsAndHistoryOfASnapshotReachAllRanks) {
  Job job;
  job.snapshot = WriteSnapshot("");
  Job without_files;
  without_files.snapshot = folder_.path("not on this host");
  const auto trained = ConstantSolver(Prefix());
  trained->LoadSnapshot(job.snapshot);
  RunGroupThreads(3, [&](collective::Group& group) {
    const auto solver = SolverOf(group.rank());
    json validations = json::array();
    TrainStart start(group.rank() == 0 ? job : without_files, group, *solver);
    const auto position = start.Load(&validations);
    ASSERT_TRUE(position.has_value());
    EXPECT_EQ(position->iteration, 2);
    EXPECT_EQ(WeightOf(*solver), WeightOf(*trained));
    const caffe::Tensor own = solver->history()[0], expected = trained->history()[0];
    ASSERT_EQ(own.numel(), expected.numel());
    for (int64_t i = 0; i < own.numel(); ++i) EXPECT_EQ(own.data_ptr()[i], expected.data_ptr()[i]);
  });
}

TEST_F(TrainStartTest, ALaterGenerationResumesFromTheLastSnapshotOfItsRun) {
  WriteSnapshot("");
  Job job = JobOfRun("a run");
  job.generation = 1;
  const auto loads = [&] {
    bool loaded = false;
    RunGroupThreads(1, [&](collective::Group& group) {
      const auto solver = SolverOf(0);
      json validations = json::array();
      loaded = TrainStart(job, group, *solver).Load(&validations).has_value();
    });
    return loaded;
  };
  EXPECT_TRUE(loads());
  job.run = "another run";
  std::string warning;
  log::SetSink([&](const log::Record& record) {
    if (record.level == log::Level::kWarning) warning = record.text;
  });
  EXPECT_FALSE(loads()) << "it starts from the beginning";
  log::SetSink({});
  EXPECT_THAT(warning, HasSubstr(folder_.path("dummy")));
}

TEST_F(TrainStartTest, RestoresTheValidationsOfTheSameRunOnly) {
  Job job = JobOfRun("a run");
  job.snapshot = WriteSnapshot(R"([{"iteration": 1}])");
  EXPECT_EQ(ValidationsOf(job), json::parse(R"([{"iteration": 1}])"));
  job.run = "another run";
  EXPECT_EQ(ValidationsOf(job), json::array());
  job.run = "";
  EXPECT_EQ(ValidationsOf(job), json::array());
}

TEST_F(TrainStartTest, NotesThatAreNoListAreIgnoredWithAWarning) {
  for (const char* notes : {"{}", "[1"}) {
    Job job = JobOfRun("a run");
    job.snapshot = WriteSnapshot(notes);
    std::string warning;
    log::SetSink([&](const log::Record& record) {
      if (record.level == log::Level::kWarning) warning = record.text;
    });
    EXPECT_EQ(ValidationsOf(job), json::array());
    log::SetSink({});
    EXPECT_THAT(warning, HasSubstr("dummy_iter_2.hearth.json"));
  }
}

TEST_F(TrainStartTest, AMissingFileFailsTheRankThatReadsItAndItsPeers) {
  Job job;
  job.weights = {folder_.path("missing.caffemodel")};
  RunGroupThreads(2, [&](collective::Group& group) {
    const auto solver = SolverOf(group.rank());
    json validations = json::array();
    TrainStart start(job, group, *solver);
    const Error error = Thrown([&] { start.Load(&validations); });
    if (group.rank() == 0) {
      EXPECT_EQ(error.code(), ErrorCode::kNotFound);
      EXPECT_THAT(error.message(), HasSubstr("missing.caffemodel"));
    } else {
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    }
  });
}

// The batch size is 0, because the net of this test is not fed by rows.
TEST_F(TrainStartTest, APositionOfAnotherBatchSizeIsNotUsedForRows) {
  const Job job;
  std::atomic<int> warnings = 0;
  log::SetSink([&](const log::Record& record) {
    if (record.level == log::Level::kWarning) ++warnings;
  });
  RunGroupThreads(2, [&](collective::Group& group) {
    const auto solver = SolverOf(0);
    const TrainStart start(job, group, *solver);
    caffe::TrainingPosition position;
    EXPECT_TRUE(start.IsOfBatchSize(position)) << "unknown";
    position.batch_size = 12;
    EXPECT_FALSE(start.IsOfBatchSize(position));
  });
  log::SetSink({});
  EXPECT_EQ(warnings, 1) << "of rank 0 alone";
}

}  // namespace
}  // namespace hearth::trainer
