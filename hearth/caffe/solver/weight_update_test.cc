#include "hearth/caffe/solver/weight_update.h"

#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hearth/base/log.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/caffe/net/testing/net_testing.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kPlain[] = "base_lr: 0.1 lr_policy: 'fixed' ";

// A net of four parameters, whose weights are 1 and whose gradients are 0.5.
class WeightUpdateTest : public testing::Test {
 protected:
  WeightUpdateTest() { Reset(*net_); }

  static std::unique_ptr<Net> NewNet() {
    return std::make_unique<Net>(ParseNet(RowsNet(4, 10), "net"), ContextOf(TRAIN), TestRegistry());
  }
  static void Reset(Net& net) {
    Tensor data = net.params().data(), diff = net.params().diff();
    data.fill_(1);
    diff.fill_(0.5);
  }
  static SolverParameter Param(const std::string& text) { return ParseSolver(text, "solver"); }
  // Returns the first weight of each parameter.
  static std::vector<float> FirstWeights(Net& net) {
    std::vector<float> weights;
    for (const LearnableParam& param : net.params().learnable()) {
      weights.push_back(param.blob->data_ptr()[0]);
    }
    return weights;
  }

  const SolverOptions options_;
  const std::unique_ptr<Net> net_ = NewNet();
};

// The second parameter has lr_mult 2 and decay_mult 0.
TEST_F(WeightUpdateTest, MultipliesRateAndDecayByEachParametersOwn) {
  const SolverParameter param = Param(std::string(kPlain) + "weight_decay: 0.2");
  WeightUpdate update(param, options_, *net_);
  update.Apply(0, 0.1F, 1);
  const std::vector<float> weights = FirstWeights(*net_);
  ASSERT_EQ(weights.size(), 4U);
  EXPECT_FLOAT_EQ(weights[0], 1 - 0.1F * (0.5F + 0.2F));
  EXPECT_FLOAT_EQ(weights[1], 1 - 0.2F * 0.5F);
  EXPECT_FLOAT_EQ(weights[2], 1 - 0.1F * (0.5F + 0.2F));
}

// Diffs are sums over minibatches. A partial minibatch counts as its fraction of batch_size.
TEST_F(WeightUpdateTest, DividesTheGradientByItsMinibatches) {
  const SolverParameter param = Param(std::string(kPlain) + "iter_size: 2");
  WeightUpdate update(param, options_, *net_);
  update.Apply(0, 0.1F, 2.5);
  EXPECT_FLOAT_EQ(FirstWeights(*net_)[0], 1 - 0.1F * 0.5F / 2.5F);
}

// Caffe limits the norm of the sum over iter_size passes.
TEST_F(WeightUpdateTest, ClipsTheGradientsNormAndLogsIt) {
  for (const int passes : {1, 2}) {
    Reset(*net_);
    const SolverParameter param =
        Param(kPlain + fmt::format("clip_gradients: 0.1 iter_size: {}", passes));
    std::mutex mutex;
    std::string log;
    log::SetSink([&](const log::Record& record) {
      const std::lock_guard lock(mutex);
      log += record.text;
    });
    WeightUpdate update(param, options_, *net_);
    update.Apply(0, 0.1F, passes);
    log::SetSink({});
    const double norm = 0.5 * std::sqrt(static_cast<double>(net_->params().layout().size));
    EXPECT_NEAR(FirstWeights(*net_)[0], 1 - 0.1 * 0.5 * 0.1 / norm / passes, 1e-6);
    EXPECT_THAT(log, HasSubstr("Gradient clipping: scaling down gradients (L2 norm"));
  }
}

TEST_F(WeightUpdateTest, DoesNotClipASmallerGradientAndLogsOnTheRootOnly) {
  int lines = 0;
  log::SetSink([&](const log::Record&) { ++lines; });
  const SolverParameter large = Param(std::string(kPlain) + "clip_gradients: 1000");
  WeightUpdate(large, options_, *net_).Apply(0, 0.1F, 1);
  EXPECT_FLOAT_EQ(FirstWeights(*net_)[0], 1 - 0.1F * 0.5F);
  const SolverParameter small = Param(std::string(kPlain) + "clip_gradients: 0.1");
  SolverOptions other_rank;
  other_rank.is_root = false;
  WeightUpdate(small, other_rank, *net_).Apply(0, 0.1F, 1);
  log::SetSink({});
  EXPECT_EQ(lines, 0);
}

// Two solvers share the memory of weights and history, and each updates one half of the weights.
TEST_F(WeightUpdateTest, SharedPartsEqualOneUpdate) {
  const SolverParameter param = Param(std::string(kPlain) + "momentum: 0.9");
  const std::unique_ptr<Net> alone = NewNet(), second = NewNet();
  Reset(*alone);
  Reset(*second);
  second->params().ShareData(net_->params());
  WeightUpdate whole(param, options_, *alone), first_half(param, options_, *net_),
      second_half(param, options_, *second);
  int waits = 0;
  first_half.Share(first_half, 0, 2, [&] { ++waits; });
  second_half.Share(first_half, 1, 2, [&] { ++waits; });
  for (int iteration = 0; iteration < 2; ++iteration) {
    whole.Apply(iteration, 0.1F, 1);
    first_half.Apply(iteration, 0.1F, 1);
    second_half.Apply(iteration, 0.1F, 1);
  }
  EXPECT_EQ(waits, 4);
  EXPECT_TRUE(Equal(net_->params().data(), alone->params().data()));
  EXPECT_TRUE(Equal(first_half.history()[0], whole.history()[0]));
  EXPECT_TRUE(Equal(second_half.history()[0], whole.history()[0]));
}

// Adam has two history groups.
TEST_F(WeightUpdateTest, ContinuesFromAHistoryThatItWrote) {
  const SolverParameter param =
      Param(std::string(kPlain) + "type: 'Adam' momentum: 0.9 momentum2: 0.999 delta: 1e-8");
  WeightUpdate update(param, options_, *net_);
  update.Apply(0, 0.1F, 1);
  SolverState state;
  update.WriteHistory(&state);
  ASSERT_EQ(state.history().size(), 8U);
  EXPECT_EQ(state.history()[0].shape().dim(), net_->params().learnable()[0].blob->shape());

  const std::unique_ptr<Net> resumed = NewNet();
  Reset(*resumed);
  Tensor weights = resumed->params().data();
  weights.copy_(net_->params().data());
  WeightUpdate continued(param, options_, *resumed);
  continued.ReadHistory(state, "a.solverstate");
  update.Apply(1, 0.1F, 1);
  continued.Apply(1, 0.1F, 1);
  EXPECT_TRUE(Equal(resumed->params().data(), net_->params().data()));
}

TEST_F(WeightUpdateTest, RejectsTheHistoryOfAnotherSolverTypeOrNet) {
  const SolverParameter adam = Param(std::string(kPlain) + "type: 'Adam'"),
                        sgd = Param(std::string(kPlain) + "type: 'SGD'");
  WeightUpdate update(sgd, options_, *net_);
  SolverState state;
  WeightUpdate(adam, options_, *net_).WriteHistory(&state);
  const Error count = Thrown([&] { update.ReadHistory(state, "a.solverstate"); });
  EXPECT_EQ(count.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(count.message(), AllOf(HasSubstr("a.solverstate holds 8 history blobs"),
                                     HasSubstr("SGD needs 4 for this net")));
  state = SolverState();
  update.WriteHistory(&state);
  *state.mutable_history(1)->mutable_shape()->mutable_dim() = {2, 2};
  const Error shape = Thrown([&] { update.ReadHistory(state, "a.solverstate"); });
  EXPECT_EQ(shape.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(shape.message(), HasSubstr("a.solverstate: history blob 1 has shape 2 2 (4)"));
}

}  // namespace
}  // namespace hearth::caffe
