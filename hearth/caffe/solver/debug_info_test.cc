#include "hearth/caffe/net/debug_info.h"

#include <gmock/gmock.h>

#include "hearth/base/log.h"
#include "hearth/caffe/net/testing/net_testing.h"
#include "hearth/caffe/solver/solver.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// y = -0.5 * (1 + 1) = -1, loss = y^2 / 2.
constexpr const char* kPrintedNet = R"(
  layer { name: "data" type: "DummyData" top: "x" dummy_data_param { shape { dim: 1 dim: 2 }
          data_filler { type: "constant" value: 1 } } }
  layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" param { name: "w" }
          inner_product_param { num_output: 1 bias_term: false
                                weight_filler { type: "constant" value: -0.5 } } }
  layer { name: "zero" type: "DummyData" top: "t" dummy_data_param { shape { dim: 1 dim: 1 }
          data_filler { type: "constant" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" })";

class DebugInfoTest : public testing::Test {
 protected:
  void SetUp() override {
    log::SetSink([this](const log::Record& record) { lines_.emplace_back(record.text); });
  }
  void TearDown() override { log::SetSink({}); }

  long Count(const std::string& part) const {
    return std::count_if(lines_.begin(), lines_.end(),
                         [&](const std::string& line) { return line.find(part) != line.npos; });
  }

  std::vector<std::string> lines_;
};

TEST_F(DebugInfoTest, LogsMeanMagnitudesInCaffesFormat) {
  Net net(ParseNet(std::string("debug_info: true ") + kPrintedNet, "net"), ContextOf(TRAIN));
  lines_.clear();
  net.Forward();
  EXPECT_THAT(lines_, ElementsAre("    [Forward] Layer data, top blob x data: 1",
                                  "    [Forward] Layer ip, top blob y data: 1",
                                  "    [Forward] Layer ip, param blob w data: 0.5",
                                  "    [Forward] Layer zero, top blob t data: 0",
                                  "    [Forward] Layer loss, top blob loss data: 0.5"));
  lines_.clear();
  net.ClearParamDiffs();
  net.Backward();
  EXPECT_THAT(lines_, ElementsAre("    [Backward] Layer loss, bottom blob y diff: 1",
                                  "    [Backward] Layer ip, param blob 0 diff: 1",
                                  "    [Backward] All net params (data, diff): L1 norm = (1, 2); "
                                  "L2 norm = (0.707107, 1.41421)"));
}

TEST_F(DebugInfoTest, ASolverLogsItAtDisplayAndInTests) {
  SolverParameter param = ParseSolver(
      "base_lr: 0.01 lr_policy: 'fixed' snapshot_after_train: false debug_info: true max_iter: 3 "
      "display: 2 test_iter: 5 test_interval: 10",
      "solver");
  *param.mutable_net_param() = ParseNet(kPrintedNet, "net");
  Solver(param, {}).Solve();
  EXPECT_EQ(Count("[Backward] All net params"), 2);  // iterations 0 and 2
  EXPECT_EQ(Count("[Forward] Layer loss"), 2 + 5);
}

TEST_F(DebugInfoTest, IsOffByDefault) {
  Net net(ParseNet(kPrintedNet, "net"), ContextOf(TRAIN));
  net.Forward();
  EXPECT_EQ(Count("[Forward]"), 0);
}

}  // namespace
}  // namespace hearth::caffe
