#include "hearth/trainer/local/local_session.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/storage/file.h"
#include "hearth/trainer/testing/trainer_testing.h"

namespace hearth::trainer {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A net that needs no rows; captures the log.
class LocalSessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    log::SetSink([this](const log::Record& record) {
      std::lock_guard lock(mutex_);
      log_ += std::string(record.text) + "\n";
      if (!raise_at_.empty() && record.text.find(raise_at_) != std::string_view::npos) {
        raise(signal_);
        raise_at_.clear();
      }
    });
    Write("net.prototxt", R"(name: "dummy"
      layer { name: "x" type: "DummyData" top: "x" top: "y"
        dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 dim: 2 }
          data_filler { type: "constant" value: 1 } data_filler { type: "constant" value: 2 } } }
      layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
      layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "y" top: "loss" })");
  }
  void TearDown() override { log::SetSink({}); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path(name)) << text;
  }

  LocalOptions Solver(int max_iter, const std::string& more = "") {
    Write("solver.prototxt",
          TestSolver(max_iter, "net: \"" + folder_.path("net.prototxt") + "\" snapshot_prefix: \"" +
                                   folder_.path("dummy") +
                                   "\" snapshot_after_train: true base_lr: 0.02 " + more));
    LocalOptions options;
    options.solver = folder_.path("solver.prototxt");
    options.threads = 1;
    return options;
  }

  bool Exists(const std::string& name) { return std::filesystem::exists(folder_.path(name)); }

  TestFolder folder_;
  std::mutex mutex_;
  std::string log_;
  std::string raise_at_;  // a log line with this text raises signal_
  int signal_ = SIGINT;
};

TEST_F(LocalSessionTest, TrainsAndTestsWithCaffesFilesAndLogLines) {
  TrainLocally(Solver(40, "test_iter: 2 test_interval: 20"));
  for (const char* line : {"Iteration 0, Testing net (#0)", "Iteration 20, Testing net (#0)",
                           "Iteration 5, lr = 0.02", "Optimization Done."}) {
    EXPECT_THAT(log_, HasSubstr(line));
  }
  ASSERT_TRUE(Exists("dummy_iter_40.caffemodel"));
  ASSERT_TRUE(Exists("dummy_iter_40.solverstate"));

  log_.clear();
  LocalOptions test;
  test.model = folder_.path("net.prototxt");
  test.weights = {folder_.path("dummy_iter_40.caffemodel")};
  test.iterations = 3;
  test.threads = 1;
  TestLocally(test);
  EXPECT_THAT(log_, HasSubstr("Batch 2, loss = "));
  EXPECT_THAT(log_, HasSubstr("Loss: "));
  EXPECT_THAT(log_, HasSubstr(" loss)"));
}

TEST_F(LocalSessionTest, ATestInInt8ReportsTheDifferenceFromFloat32) {
  TrainLocally(Solver(40));
  LocalOptions test;
  test.model = folder_.path("net.prototxt");
  test.weights = {folder_.path("dummy_iter_40.caffemodel")};
  test.iterations = 3;
  test.threads = 1;
  log_.clear();
  TestLocally(test);
  EXPECT_THAT(log_, Not(HasSubstr("compared with float32")));
  test.settings.precision = "int8";
  log_.clear();
  TestLocally(test);
  EXPECT_THAT(log_, HasSubstr("int8 compared with float32 on the same 3 batches:"));
  EXPECT_THAT(log_, ::testing::ContainsRegex(
                        "loss: float32 [-+.e0-9]+, int8 [-+.e0-9]+, difference [-+][.e0-9-]+\n"));
}

TEST_F(LocalSessionTest, ATestThatWritesItsOutputsIsNotComparedWithFloat32) {
  TrainLocally(Solver(40));
  LocalOptions test;
  test.model = folder_.path("writes.prototxt");
  const std::string net = storage::ReadFile(folder_.path("net.prototxt"));
  std::ofstream(test.model) << net
                            << fmt::format(R"(
    layer {{ name: "written" type: "HDF5Output" bottom: "x" bottom: "y"
             hdf5_output_param {{ file_name: "{}" }} }})",
                                           folder_.path("written.h5"));
  test.weights = {folder_.path("dummy_iter_40.caffemodel")};
  test.iterations = 3;
  test.threads = 1;
  test.settings.precision = "int8";
  log_.clear();
  TestLocally(test);
  EXPECT_THAT(log_, HasSubstr("int8 is not compared with float32"));
  EXPECT_TRUE(Exists("written.h5"));
}

TEST_F(LocalSessionTest, TrainingInInt8IsRefused) {
  LocalOptions options = Solver(40);
  options.settings.precision = "int8";
  EXPECT_THAT([&] { TrainLocally(options); },
              ::testing::ThrowsMessage<Error>(
                  HasSubstr("precision int8 is for tests and features of trained nets")));
}

TEST_F(LocalSessionTest, SigintStopsAndWritesASnapshot) {
  raise_at_ = "Iteration 10, lr";
  TrainLocally(Solver(100000));
  EXPECT_THAT(log_, HasSubstr("Optimization stopped early."));
  EXPECT_TRUE(Exists("dummy_iter_12.solverstate")) << log_;
}

TEST_F(LocalSessionTest, SigintEndsALongTest) {
  raise_at_ = "Iteration 0, Testing net";
  TrainLocally(Solver(100000, "test_iter: 1000000000 test_interval: 10"));
  EXPECT_THAT(log_, HasSubstr("Test interrupted."));
  EXPECT_TRUE(Exists("dummy_iter_2.solverstate")) << log_;
}

TEST_F(LocalSessionTest, SighupWritesASnapshotAndContinues) {
  raise_at_ = "Iteration 10, lr";
  signal_ = SIGHUP;
  TrainLocally(Solver(20));
  EXPECT_TRUE(Exists("dummy_iter_11.solverstate")) << log_;
  EXPECT_TRUE(Exists("dummy_iter_20.solverstate"));
}

TEST_F(LocalSessionTest, ResumesFromASnapshot) {
  TrainLocally(Solver(10));
  log_.clear();
  LocalOptions options = Solver(20);
  options.snapshot = folder_.path("dummy_iter_10.solverstate");
  TrainLocally(options);
  EXPECT_THAT(log_, Not(HasSubstr("Iteration 5,")));
  EXPECT_TRUE(Exists("dummy_iter_20.caffemodel"));
}

TEST_F(LocalSessionTest, NamesAMissingSolver) {
  LocalOptions options;
  options.solver = folder_.path("none.prototxt");
  try {
    TrainLocally(options);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_THAT(error.message(), HasSubstr("none.prototxt"));
  }
}

}  // namespace
}  // namespace hearth::trainer
