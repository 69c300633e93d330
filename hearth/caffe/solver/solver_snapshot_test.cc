#include <gmock/gmock.h>

#include <filesystem>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/caffe/net/testing/net_testing.h"
#include "hearth/caffe/snapshot/snapshot.h"
#include "hearth/caffe/solver/solver.h"
#include "hearth/caffe/solver/testing/observer_testing.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

class SolverSnapshotTest : public testing::Test {
 protected:
  SolverSnapshotTest() {
    std::string name = (fs::temp_directory_path() / "hearth_snapshot_XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~SolverSnapshotTest() override { fs::remove_all(folder_); }

  // Dropout draws random numbers in every iteration, and 10 rows in minibatches of 4 include a
  // partial one.
  std::unique_ptr<Solver> Make(const std::string& text = "", const std::string& net = Net()) {
    SolverParameter param = ParseSolver(
        fmt::format("base_lr: 0.1 lr_policy: 'multistep' gamma: 0.5 stepvalue: 3 stepvalue: 8 "
                    "average_loss: 4 snapshot_prefix: '{}/a' {}",
                    folder_.string(), text),
        "solver");
    *param.mutable_net_param() = ParseNet(net, "net");
    SolverOptions options;
    options.registry = &TestRegistry();
    options.observer = &observer_;
    return std::make_unique<Solver>(param, std::move(options));
  }

  static std::string Net() {
    return RowsNet(4, 10, 0, "layer { name: 'd' type: 'Dropout' bottom: 'h' top: 'h' }");
  }

  static Tensor Everything(Solver& solver) {
    std::vector<Tensor> parts = solver.history();
    parts.push_back(solver.net().params().data());
    return Joined(parts);
  }

  fs::path folder_;
  IterationReport last_{};
  IterationObserver observer_{[this](const IterationReport& report) { last_ = report; }};
};

class Resume : public SolverSnapshotTest, public testing::WithParamInterface<const char*> {};

TEST_P(Resume, EqualsAnUninterruptedRunBitForBit) {
  for (int at : {1, 3, 4, 7}) {
    auto straight = Make(GetParam());
    straight->Step(at);
    const auto [model, state] = straight->Snapshot();
    straight->Step(11 - at);
    const IterationReport expected = last_;
    auto resumed = Make(GetParam());
    resumed->Step(2);  // the resume below must overwrite this
    resumed = Make(GetParam());
    resumed->Restore(state);
    EXPECT_EQ(resumed->iteration(), at);
    resumed->Step(11 - at);
    EXPECT_TRUE(Equal(Everything(*straight), Everything(*resumed))) << "from iteration " << at;
    EXPECT_EQ(last_.smoothed_loss, expected.smoothed_loss);
    EXPECT_EQ(last_.learning_rate, expected.learning_rate);
    EXPECT_EQ(last_.rows, expected.rows);
  }
}

INSTANTIATE_TEST_SUITE_P(Solvers, Resume,
                         testing::Values("momentum: 0.9", "momentum: 0.9 snapshot_format: HDF5",
                                         "type: 'Adam' momentum: 0.9 iter_size: 2"));

TEST_F(SolverSnapshotTest, IsWrittenAtItsIntervalUnderCaffesNames) {
  auto solver = Make("snapshot: 2 max_iter: 5");
  solver->Solve();
  for (const char* name :
       {"a_iter_2.caffemodel", "a_iter_2.solverstate", "a_iter_4.caffemodel",
        "a_iter_4.solverstate", "a_iter_5.caffemodel", "a_iter_5.solverstate",
        "a_iter_2.hearth.json", "a_iter_4.hearth.json", "a_iter_5.hearth.json"}) {
    EXPECT_TRUE(fs::exists(folder_ / name)) << name;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 9);
}

TEST_F(SolverSnapshotTest, AStateWithANegativeNumberIsRejectedByName) {
  for (const char* ending : {"", ".h5"}) {
    const std::string file = (folder_ / "a_iter_1.solverstate").string() + ending;
    for (const auto& [iter, step] : {std::pair{-3, 0}, std::pair{3, -1}}) {
      SolverState state;
      state.set_iter(iter);
      state.set_current_step(step);
      WriteState(state, file);
      const std::string field = iter < 0 ? "iter is -3" : "current_step is -1";
      EXPECT_THAT([&] { ReadState(file); },
                  ThrowsMessage<Error>(testing::AllOf(HasSubstr(file), HasSubstr(field))));
    }
  }
}

TEST_F(SolverSnapshotTest, APositionBeyondItsEpochIsReportedAndTheNextEpochBegins) {
  auto solver = Make();
  solver->Step(2);
  const auto [model, state] = solver->Snapshot();
  auto resumed = Make();
  TrainingPosition position = resumed->LoadSnapshot(state);
  position.fetches = 1'000'000'000'000'000;
  std::string log;
  log::SetSink([&log](const log::Record& record) { log += std::string(record.text) + "\n"; });
  const Skipped skipped = resumed->ResumeAt(position);
  resumed->WarnIfShort(position, skipped.minibatches);
  log::SetSink({});
  EXPECT_EQ(skipped.rows, 10);
  EXPECT_EQ(skipped.minibatches, 3);
  EXPECT_THAT(log, HasSubstr("a_iter_2.hearth.json: field \"fetches\" is 1000000000000000"));
  resumed->Step(1);
  EXPECT_EQ(last_.rows, 4);
}

// With another seed, every epoch but the first has another order. The epoch restarts, because
// otherwise some rows would come twice.
TEST_F(SolverSnapshotTest, WithAnotherSeedALaterEpochRestarts) {
  for (const auto& [iterations, rows] : {std::pair{2, 8}, std::pair{5, 0}}) {
    auto solver = Make("random_seed: 7");
    solver->Step(iterations);
    const auto [model, state] = solver->Snapshot();
    auto resumed = Make("random_seed: 8");
    std::string log;
    log::SetSink([&log](const log::Record& record) { log += std::string(record.text) + "\n"; });
    const Skipped skipped = resumed->ResumeAt(resumed->LoadSnapshot(state));
    log::SetSink({});
    EXPECT_EQ(skipped.rows, rows);
    EXPECT_EQ(log.find("its epoch begins again") != std::string::npos, rows == 0) << log;
  }
}

TEST_F(SolverSnapshotTest, IsWrittenOnRequest) {
  auto solver = Make();
  solver->RequestSnapshot();
  solver->Step(3);
  EXPECT_TRUE(fs::exists(folder_ / "a_iter_1.solverstate"));
  EXPECT_FALSE(fs::exists(folder_ / "a_iter_2.solverstate"));
}

TEST_F(SolverSnapshotTest, AFailedSnapshotLeavesNoFile) {
  for (const char* name : {"a_iter_1.caffemodel", "a_iter_1.solverstate", "a_iter_1.hearth.json"}) {
    auto solver = Make();
    solver->Step(1);
    fs::create_directories(folder_ / name / "in the way");  // prevents renaming to this name
    EXPECT_THAT([&] { solver->Snapshot(); }, ThrowsMessage<Error>(HasSubstr(name)));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1) << name;
    fs::remove_all(folder_ / name);
  }
}

TEST_F(SolverSnapshotTest, IsFoundAfterBeingMoved) {
  auto solver = Make();
  solver->Step(1);
  solver->Snapshot();
  fs::create_directory(folder_ / "moved");
  for (const char* name : {"a_iter_1.caffemodel", "a_iter_1.solverstate"}) {
    fs::rename(folder_ / name, folder_ / "moved" / name);
  }
  auto resumed = Make();
  resumed->Restore((folder_ / "moved" / "a_iter_1.solverstate").string());
  EXPECT_EQ(resumed->iteration(), 1);
  fs::remove(folder_ / "moved" / "a_iter_1.caffemodel");
  EXPECT_THAT([&] { resumed->Restore((folder_ / "moved" / "a_iter_1.solverstate").string()); },
              ThrowsMessage<Error>(HasSubstr("neither at its path nor beside the state")));
}

TEST_F(SolverSnapshotTest, OfAnotherSolverTypeIsRejected) {
  auto sgd = Make();
  const std::string state = sgd->Snapshot().second;
  auto adam = Make("type: 'Adam'");
  EXPECT_THAT([&] { adam->Restore(state); },
              ThrowsMessage<Error>(
                  HasSubstr("holds 4 history blobs, but solver type Adam needs 8 for this net")));
}

TEST_F(SolverSnapshotTest, InHdf5HasCaffesNames) {
  auto solver = Make("snapshot_format: HDF5");
  solver->Step(3);
  const auto [model, state] = solver->Snapshot();
  EXPECT_EQ(fs::path(model).filename(), "a_iter_3.caffemodel.h5");
  EXPECT_EQ(fs::path(state).filename(), "a_iter_3.solverstate.h5");
}

TEST_F(SolverSnapshotTest, LoadsWeightsFromSeveralFiles) {
  auto from = Make();
  from->Step(3);
  const auto [model, state] = from->Snapshot();
  auto to = Make();
  to->LoadWeights(model + "," + model);
  EXPECT_TRUE(Equal(from->net().params().data(), to->net().params().data()));
  EXPECT_EQ(to->iteration(), 0);
}

}  // namespace
}  // namespace hearth::caffe
