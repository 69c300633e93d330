#include "hearth/caffe/solver/gradient_step.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "hearth/base/log.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/caffe/net/testing/net_testing.h"
#include "hearth/caffe/solver/iteration_error.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

// Records the calls. In Finish, simulates other ranks that add `others` to each element of the
// gradient.
class RecordingSync final : public GradientSync {
 public:
  Tensor AllocateDiff(const ParamLayout& layout) override {
    return diff = Tensor::Zeros({layout.size});
  }
  void GradientReady(size_t index) override { ready.push_back(index); }
  Result Finish(double local_weight) override {
    weight = local_weight;
    for (int64_t i = 0; i < diff.numel(); ++i) diff.data_ptr()[i] += others;
    Result answer = result;
    answer.all += local_weight;
    answer.summed += local_weight;
    return answer;
  }

  Tensor diff;
  std::vector<size_t> ready;
  double weight = -1;
  float others = 0;
  Result result;  // of the other ranks
};

// Tests a net that is fed ten rows in minibatches of 4, 4 and 2.
class GradientStepTest : public testing::Test {
 protected:
  void Build(const std::string& solver = "", const std::string& middle = "") {
    param_ = ParseSolver("base_lr: 0.1 lr_policy: 'fixed' " + solver, "solver");
    options_.sync = sync_;
    options_.observer = &observer_;
    net_ = NewNet(middle);
    feed_.emplace(*net_);
    step_.emplace(param_, options_, *net_, *feed_);
  }
  static std::unique_ptr<Net> NewNet(const std::string& middle) {
    return std::make_unique<Net>(ParseNet(RowsNet(4, 10, 0, middle), "net"), ContextOf(TRAIN),
                                 TestRegistry());
  }

  SolverParameter param_;
  SolverOptions options_;
  SolverObserver observer_;
  const std::shared_ptr<RecordingSync> sync_ = std::make_shared<RecordingSync>();
  std::unique_ptr<Net> net_;
  std::optional<RowCursor> feed_;
  std::optional<GradientStep> step_;
};

TEST_F(GradientStepTest, SumsThePassesAndReportsEachParameterOnce) {
  Build("iter_size: 2");
  const StepGradient gradient = step_->Compute(0);
  EXPECT_THAT(sync_->ready, UnorderedElementsAre(0, 1, 2, 3));
  EXPECT_EQ(sync_->ready.front() / 2, 1U) << "the last layer's come first";
  EXPECT_EQ(sync_->weight, 2);
  EXPECT_EQ(gradient.rows, 8);

  const std::unique_ptr<Net> by_hand = NewNet("");
  by_hand->ClearParamDiffs();
  double loss = 0;
  for (int pass = 0; pass < 2; ++pass) {
    by_hand->Fetch();
    loss += by_hand->Forward();
    by_hand->Backward();
  }
  EXPECT_TRUE(Equal(sync_->diff, by_hand->params().diff()));
  EXPECT_DOUBLE_EQ(gradient.loss, loss);
}

TEST_F(GradientStepTest, APartialMinibatchCountsAsItsShare) {
  Build();
  step_->Compute(0);
  step_->Compute(1);
  const StepGradient gradient = step_->Compute(2);
  EXPECT_EQ(gradient.rows, 2);
  EXPECT_EQ(gradient.local_weight, 0.5);
  EXPECT_EQ(sync_->weight, 0.5);
}

TEST_F(GradientStepTest, ARankWithoutRowsTakesPartWithAnEmptyGradient) {
  Build("iter_size: 4");  // in the fourth pass, the epoch has ended
  const StepGradient first = step_->Compute(0);
  EXPECT_EQ(first.local_weight, 2.5);
  EXPECT_THAT(sync_->ready, UnorderedElementsAre(0, 1, 2, 3));
  sync_->ready.clear();
  sync_->others = 3;
  sync_->result.summed = sync_->result.all = 7;
  const StepGradient empty = step_->Compute(1);
  EXPECT_THAT(sync_->ready, UnorderedElementsAre(0, 1, 2, 3));
  EXPECT_EQ(empty.local_weight, 0);
  EXPECT_EQ(empty.rows, 0);
  EXPECT_EQ(empty.weight, 7);
  EXPECT_EQ(net_->params().diff().data_ptr()[0], 3) << "the other ranks' alone";
}

TEST_F(GradientStepTest, ReturnsWhatAnyRankRequested) {
  Build();
  EXPECT_FALSE(step_->Compute(0).stop);
  sync_->result.stop = true;
  EXPECT_TRUE(step_->Compute(1).stop);
  sync_->result = {};
  sync_->result.snapshot = true;
  const StepGradient gradient = step_->Compute(2);
  EXPECT_FALSE(gradient.stop);
  EXPECT_TRUE(gradient.snapshot);
}

TEST_F(GradientStepTest, ANonFiniteLossEndsTheTrainingIfRequested) {
  options_.stop_on_nan = true;
  Build();
  net_->layer("ip2").blobs()[0]->data_ptr()[0] = std::numeric_limits<float>::infinity();
  try {
    step_->Compute(41);
    FAIL();
  } catch (const IterationError& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    EXPECT_EQ(error.iteration(), 41);
    EXPECT_EQ(error.layer(), "ip2");
    EXPECT_THAT(error.message(), HasSubstr("clip_gradients"));
  }
}

TEST_F(GradientStepTest, ANonFiniteLossIsWarnedOfOnceUntilItIsFiniteAgain) {
  Build();
  std::vector<std::string> warnings;
  log::SetSink([&](const log::Record& record) {
    if (record.level == log::Level::kWarning) warnings.emplace_back(record.text);
  });
  float& weight = net_->layer("ip2").blobs()[0]->data_ptr()[0];
  const float before = weight;
  weight = std::nanf("");
  step_->Compute(0);
  step_->Compute(1);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("iteration 0: the loss is nan")));
  weight = before;
  step_->Compute(2);
  feed_->NextEpoch();
  net_->layer("ip2").blobs()[0]->data_ptr()[0] = std::nanf("");
  step_->Compute(3);
  log::SetSink({});
  EXPECT_EQ(warnings.size(), 2U);
  EXPECT_TRUE(std::isnan(step_->last_loss()));
}

// Another rank has weight 1, and all of its statistics are 3.
TEST_F(GradientStepTest, AveragesStatisticsOverRanksByTheirWeights) {
  options_.ranks = 2;
  Build("", "layer { name: 'bn' type: 'BatchNorm' bottom: 'h' top: 'h' }");
  EXPECT_TRUE(step_->averages_statistics());
  const std::unique_ptr<Net> alone =
      NewNet("layer { name: 'bn' type: 'BatchNorm' bottom: 'h' top: 'h' }");
  alone->Fetch();
  alone->Forward();
  sync_->others = 3;
  sync_->result.summed = sync_->result.all = 1;
  step_->Compute(0);
  for (size_t i = 0; i < 3; ++i) {
    const Blob& blob = *net_->layer("bn").blobs()[i];
    for (int64_t j = 0; j < blob.count(); ++j) {
      const float own = alone->layer("bn").blobs()[i]->data_ptr()[j];
      EXPECT_FLOAT_EQ(net_->layer("bn").blobs()[i]->data_ptr()[j], (own + 3) / 2);
      EXPECT_EQ(net_->layer("bn").blobs()[i]->diff_ptr()[j], 0) << "there is nothing to update";
    }
  }
}

TEST_F(GradientStepTest, KeepsStatisticsIfNoRankHadRows) {
  options_.ranks = 2;
  Build("iter_size: 3", "layer { name: 'bn' type: 'BatchNorm' bottom: 'h' top: 'h' }");
  step_->Compute(0);
  const std::vector<float> before = ListOf(net_->layer("bn").blobs()[0]->data());
  EXPECT_EQ(step_->Compute(1).weight, 0);
  EXPECT_EQ(ListOf(net_->layer("bn").blobs()[0]->data()), before);
}

}  // namespace
}  // namespace hearth::caffe
