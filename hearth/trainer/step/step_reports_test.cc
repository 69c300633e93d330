#include "hearth/trainer/step/step_reports.h"

#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "hearth/trainer/testing/solver_testing.h"
#include "hearth/trainer/testing/trainer_testing.h"

namespace hearth::trainer {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

// A solver that trains for four iterations in a group of one.
class StepReportsTest : public ::testing::Test {
 protected:
  void Build(int rank, const std::string& solver = "") {
    sync_ = MakeDistributedSync(*groups_[0], 10);
    caffe::SolverOptions options;
    options.sync = sync_;
    solver_ = ConstantSolver(solver, std::move(options));
    reports_.emplace(job_, rank, *solver_, *sync_,
                     [this](const json& event) { events_.push_back(event); });
  }
  // Runs one iteration and returns its events, except for the times of steps.
  std::vector<json> Step(caffe::IterationReport report, int64_t invalid_rows = 0) {
    events_.clear();
    solver_->Step(1);
    reports_->OnIteration(report, invalid_rows);
    std::vector<json> others;
    for (const json& event : events_) {
      if (event["event"] != "rank") others.push_back(event);
    }
    return others;
  }
  static caffe::IterationReport Report(int iteration, float loss) {
    return {iteration, loss, loss, 0.01F, 0};
  }

  Job job_;
  std::vector<std::unique_ptr<collective::Group>> groups_ = collective::Group::ConnectThreads(1);
  std::shared_ptr<DistributedSync> sync_;
  std::unique_ptr<caffe::Solver> solver_;
  std::optional<StepReports> reports_;
  std::vector<json> events_;
};

TEST_F(StepReportsTest, TheRootSendsProgressWithOutputsAndInvalidRows) {
  Build(0);
  // The last iteration is always reported.
  const std::vector<json> events = Step(Report(4, 0.5F), 3);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0]["event"], "progress");
  EXPECT_EQ(events[0]["iteration"], 4);
  EXPECT_EQ(events[0]["max_iter"], 4);
  EXPECT_EQ(events[0]["loss"], 0.5);
  EXPECT_EQ(events[0]["invalid_rows"], 3);
  EXPECT_TRUE(events[0]["outputs"].contains("loss"));
}

TEST_F(StepReportsTest, OtherRanksSendTheirTimesOnly) {
  Build(1);
  EXPECT_THAT(Step(Report(4, 0.5F)), ElementsAre());
  ASSERT_FALSE(events_.empty());
  EXPECT_EQ(events_[0]["rank"], 1);
}

// A root without rows has a loss of NaN for the rest of the epoch, which JSON cannot represent.
TEST_F(StepReportsTest, KeepsTheLastFiniteLoss) {
  Build(0);
  Step(Report(3, 0.25F));
  const std::vector<json> events = Step(Report(4, std::nanf("")));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0]["loss"], 0.25);
}

TEST_F(StepReportsTest, SendsHistogramsAtTheirInterval) {
  job_.settings.log_histograms = 2;
  Build(0);
  const auto histograms = [&](int iteration) {
    size_t count = 0;
    for (const json& event : Step(Report(iteration, 1))) {
      if (event["event"] == "progress") continue;
      EXPECT_EQ(event["iteration"], iteration);
      ++count;
    }
    return count;
  };
  EXPECT_EQ(histograms(1), 0U);
  EXPECT_EQ(histograms(2), 4U) << "weights and gradients of two parameters";
  EXPECT_EQ(histograms(3), 0U);
}

TEST_F(StepReportsTest, AnUpdateHasTheRowsOfAllDevicesAndPasses) {
  job_.world = 2;
  job_.settings.devices = 3;
  Build(0, "iter_size: 5");
  EXPECT_EQ(reports_->effective_batch(), 2 * 3 * 5) << "a net without rows counts as one";
  solver_->Step(1);
  EXPECT_EQ(RowsOfStep(*sync_, solver_->net()), 5);
}

}  // namespace
}  // namespace hearth::trainer
