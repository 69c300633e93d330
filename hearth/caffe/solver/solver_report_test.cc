#include <gmock/gmock.h>

#include <regex>

#include "hearth/base/log.h"
#include "hearth/caffe/net/testing/net_testing.h"
#include "hearth/caffe/solver/solver.h"

namespace hearth::caffe {
namespace {

// Returns the lines that a solver logs while it trains.
std::vector<std::string> LinesOf(const std::string& solver_text, const std::string& net,
                                 bool is_root = true) {
  std::vector<std::string> lines;
  log::SetSink([&](const log::Record& record) { lines.emplace_back(record.text); });
  SolverParameter param = ParseSolver(
      "base_lr: 0.01 lr_policy: 'fixed' snapshot_after_train: false " + solver_text, "solver");
  *param.mutable_net_param() = ParseNet(net, "net");
  SolverOptions options;
  options.registry = &TestRegistry();
  options.is_root = is_root;
  Solver(param, std::move(options)).Solve();
  log::SetSink({});
  return lines;
}

bool HasLine(const std::vector<std::string>& lines, const std::string& pattern) {
  const std::regex regex(pattern);
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return std::regex_match(line, regex); });
}

TEST(SolverReport, HasTheLinesThatParseLogReads) {
  const auto lines =
      LinesOf("max_iter: 4 display: 2 test_iter: 3 test_interval: 4 test_compute_loss: true",
              RowsNet(4, 10));
  for (const char* pattern :
       {R"(Iteration 0, Testing net \(#0\))", R"(Test loss: [\d.e-]+)",
        R"(    Test net output #0: loss = [\d.e-]+ \(\* 1 = [\d.e-]+ loss\))",
        R"(Iteration 2 \([\d.e+-]+ iter/s, [\d.e+-]+s/2 iters\), loss = [\d.e-]+)",
        R"(    Train net output #0: loss = [\d.e-]+ \(\* 1 = [\d.e-]+ loss\))",
        R"(Iteration 2, lr = 0\.01)", R"(Iteration 4, loss = [\d.e-]+)",
        R"(Iteration 4, Testing net \(#0\))", R"(Optimization Done\.)"}) {
    EXPECT_TRUE(HasLine(lines, pattern)) << pattern << "\n" << testing::PrintToString(lines);
  }
}

TEST(SolverReport, OtherRanksDoNotLog) {
  EXPECT_THAT(LinesOf("max_iter: 4 display: 1", RowsNet(4, 10), false), testing::IsEmpty());
}

TEST(SolverReport, AveragesATestOverRows) {
  // With three rows in minibatches of 2 and 1, the mean over rows differs from the mean over
  // minibatches.
  const auto by_two =
      LinesOf("max_iter: 0 test_iter: 2 test_interval: 1 random_seed: 1", RowsNet(2, 3));
  const auto at_once =
      LinesOf("max_iter: 0 test_iter: 1 test_interval: 1 random_seed: 1", RowsNet(3, 3));
  const auto value = [](const std::vector<std::string>& lines) {
    for (const std::string& line : lines) {
      const size_t at = line.find("#0: loss = ");
      if (at != line.npos) return std::stod(line.substr(at + 11));
    }
    return -1.0;
  };
  EXPECT_GT(value(at_once), 0);
  EXPECT_NEAR(value(by_two), value(at_once), 1e-5);
}

}  // namespace
}  // namespace hearth::caffe
