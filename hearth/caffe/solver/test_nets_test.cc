#include "hearth/caffe/solver/test_nets.h"

#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "hearth/base/testing/error_testing.h"
#include "hearth/caffe/net/testing/net_testing.h"

namespace hearth::caffe {
namespace {

using testing::HasSubstr;

// Records the means of the tests, and can interrupt them.
class TestObserver final : public SolverObserver {
 public:
  bool TestIsInterrupted() override { return minibatches_left-- == 0; }
  void OnTest(size_t index, Net& net, const std::vector<double>& values) override {
    indices.push_back(index);
    means = values;
  }

  int minibatches_left = -1;  // minibatches until the interruption
  std::vector<size_t> indices;
  std::vector<double> means;
};

class TestNetsTest : public testing::Test {
 protected:
  TestNetsTest() {
    options_.observer = &observer_;
    options_.registry = &TestRegistry();
    // The prediction is 0, so the loss of row r is sin(3 r)^2 / 2.
    for (const char* layer : {"ip1", "ip2"}) {
      for (const auto& blob : trained_.layer(layer).blobs()) {
        Tensor values = blob->data();
        values.fill_(0);
      }
    }
  }

  TestNets Build(const std::string& solver, int rows = 10) {
    param_ = ParseSolver("base_lr: 0.1 lr_policy: 'fixed' " + solver, "solver");
    *param_.mutable_net_param() = ParseNet("name: 'rows' " + RowsNet(4, rows), "net");
    return {param_, options_, 5};
  }
  static double MeanLoss(int rows) {
    double sum = 0;
    for (int row = 0; row < rows; ++row) sum += std::pow(std::sin(3.0F * row), 2) / 2;
    return sum / rows;
  }

  SolverParameter param_;
  SolverOptions options_;
  TestObserver observer_;
  Net trained_{ParseNet(RowsNet(4, 10), "net"), ContextOf(TRAIN), TestRegistry()};
};

TEST_F(TestNetsTest, AreBuiltOnTheRootOnlyUnlessTheObserverValidates) {
  EXPECT_EQ(Build("test_iter: 3 test_interval: 10").nets().size(), 1U);
  EXPECT_EQ(Build("").nets().size(), 0U);
  options_.is_root = false;
  EXPECT_EQ(Build("test_iter: 3 test_interval: 10").nets().size(), 0U);
  options_.is_root = true;
  options_.validates = true;
  EXPECT_EQ(Build("test_iter: 3").nets().size(), 0U);
}

TEST_F(TestNetsTest, NeedATestInterval) {
  for (const bool is_root : {true, false}) {  // all ranks must fail
    options_.is_root = is_root;
    const Error error = Thrown([&] { Build("test_iter: 3"); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("no test_interval"));
  }
}

// The minibatches have 4, 4 and 2 rows.
TEST_F(TestNetsTest, EveryRowHasTheSameWeightInTheMeans) {
  TestNets nets = Build("test_iter: 3 test_interval: 10");
  nets.RunAll(0, trained_);
  ASSERT_EQ(observer_.means.size(), 1U);
  EXPECT_NEAR(observer_.means[0], MeanLoss(10), 1e-6);
  EXPECT_EQ(observer_.indices, std::vector<size_t>{0});
}

TEST_F(TestNetsTest, StartOverAtTheEndOfTheirRows) {
  TestNets nets = Build("test_iter: 6 test_interval: 10");
  nets.RunAll(0, trained_);
  EXPECT_NEAR(observer_.means[0], MeanLoss(10), 1e-6);
}

TEST_F(TestNetsTest, AnInterruptedTestHasNoResult) {
  TestNets nets = Build("test_iter: 1000000000 test_interval: 10");
  observer_.minibatches_left = 2;
  nets.RunAll(0, trained_);
  EXPECT_TRUE(observer_.indices.empty());
}

TEST_F(TestNetsTest, ANetWithoutRowsIsNamed) {
  TestNets nets = Build("test_iter: 1 test_interval: 10", /*rows=*/0);
  const Error error = Thrown([&] { nets.RunAll(0, trained_); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("test net 'rows' has no rows"));
}

}  // namespace
}  // namespace hearth::caffe
