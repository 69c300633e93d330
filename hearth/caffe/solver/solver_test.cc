#include "hearth/caffe/solver/solver.h"

#include <gmock/gmock.h>

#include <barrier>
#include <cmath>
#include <thread>

#include "hearth/base/error.h"
#include "hearth/caffe/net/testing/net_testing.h"
#include "hearth/caffe/solver/gradient_norm.h"
#include "hearth/caffe/solver/testing/observer_testing.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr char kSgd[] = "base_lr: 0.1 lr_policy: 'fixed' momentum: 0.9 weight_decay: 0.01 ";

std::unique_ptr<Solver> MakeSolver(const std::string& solver, const std::string& net,
                                   SolverOptions options = {}) {
  SolverParameter param = ParseSolver(solver, "solver");
  *param.mutable_net_param() = ParseNet(net, "net");
  options.seed = 5;
  options.registry = &TestRegistry();
  return std::make_unique<Solver>(param, std::move(options));
}

Tensor Weights(Solver& solver) { return solver.net().params().data().clone(); }

// Sums the gradients of solvers on several threads, in rank order.
class InProcessSync {
 public:
  explicit InProcessSync(int ranks) : diffs_(ranks), weights_(ranks), barrier_(ranks) {}

  class Sync final : public GradientSync {
   public:
    Sync(InProcessSync* owner, int rank) : owner_(owner), rank_(rank) {}
    Tensor AllocateDiff(const ParamLayout& layout) override {
      ready_.assign(layout.slices.size(), 0);
      return owner_->diffs_[rank_] = Tensor::Zeros({layout.size});
    }
    void GradientReady(size_t index) override { ++ready_[index]; }
    Result Finish(double local_weight) override {
      EXPECT_THAT(ready_, testing::Each(1)) << "each gradient must be reported once";
      std::fill(ready_.begin(), ready_.end(), 0);
      owner_->weights_[rank_] = local_weight;
      owner_->barrier_.arrive_and_wait();
      Tensor sum = Tensor::Zeros(owner_->diffs_[rank_].sizes());
      double weight = 0;
      for (size_t i = 0; i < owner_->diffs_.size(); ++i) {
        sum.add_(owner_->diffs_[i]);
        weight += owner_->weights_[i];
      }
      owner_->barrier_.arrive_and_wait();
      owner_->diffs_[rank_].copy_(sum);
      owner_->barrier_.arrive_and_wait();
      return {weight, weight};
    }

   private:
    InProcessSync* owner_;
    int rank_;
    std::vector<int> ready_;
  };

 private:
  std::vector<Tensor> diffs_;
  std::vector<double> weights_;
  std::barrier<> barrier_;
};

// Returns weights and history of `nets.size()` solvers that trained together for `steps`
// iterations.
std::vector<Tensor> TrainTogether(const std::string& solver, const std::vector<std::string>& nets,
                                  int steps, std::vector<std::vector<int64_t>>* rows = nullptr) {
  const auto ranks = static_cast<int>(nets.size());
  InProcessSync owner(ranks);
  std::vector<Tensor> results(ranks);
  if (rows) rows->resize(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      SolverOptions options;
      options.sync = std::make_shared<InProcessSync::Sync>(&owner, rank);
      IterationObserver observer([&](const IterationReport& report) {
        if (rows) (*rows)[rank].push_back(report.rows);
      });
      options.observer = &observer;
      auto one = MakeSolver(solver, nets[rank], std::move(options));
      one->Step(steps);
      results[rank] = Joined({Weights(*one), one->history()[0]});
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

TEST(Solver, UpdateByHandEqualsAnIteration) {
  const std::string settings = std::string(kSgd) + "iter_size: 2 snapshot_after_train: false";
  auto stepped = MakeSolver(settings, RowsNet(4, 100)),
       by_hand = MakeSolver(settings, RowsNet(4, 100));
  stepped->Step(3);
  for (int iteration = 0; iteration < 3; ++iteration) {
    Net& net = by_hand->net();
    net.ClearParamDiffs();
    for (int pass = 0; pass < 2; ++pass) {
      net.Fetch();
      net.Forward();
      net.Backward();
    }
    by_hand->ApplyUpdate();
  }
  EXPECT_EQ(by_hand->iteration(), 3);
  EXPECT_TRUE(AllClose(Weights(*by_hand), Weights(*stepped), 1e-6, 1e-8));
}

TEST(Solver, TrainsSharedWeights) {
  auto solver = MakeSolver(kSgd, RowsNet(4, 100));
  Net other(ParseNet(RowsNet(4, 100), "net"), ContextOf(TRAIN, 9), TestRegistry());
  solver->net().ShareTrainedLayersWith(other);
  const Tensor before = other.params().data().clone();
  solver->set_base_lr(0.2f);
  EXPECT_FLOAT_EQ(solver->learning_rate(), 0.2f);
  solver->Step(2);
  EXPECT_FALSE(Equal(other.params().data(), before));
}

TEST(Solver, LearnsARegression) {
  std::vector<float> losses;
  IterationObserver observer([&](const IterationReport& r) { losses.push_back(r.loss); });
  SolverOptions options;
  options.observer = &observer;
  auto solver = MakeSolver(kSgd, RowsNet(8, 8), std::move(options));
  solver->Step(400);
  EXPECT_LT(losses.back(), 0.7f * losses.front());
}

TEST(Solver, BeginsTheNextEpochAndWeightsAPartialMinibatchByItsRows) {
  std::vector<int64_t> rows;
  IterationObserver observer([&](const IterationReport& r) { rows.push_back(r.rows); });
  SolverOptions options;
  options.observer = &observer;
  auto solver = MakeSolver(kSgd, RowsNet(4, 10), std::move(options));
  solver->Step(7);
  EXPECT_THAT(rows, ElementsAre(4, 4, 2, 4, 4, 2, 4));
}

TEST(Solver, FailsIfAWholeEpochHasNoRows) {
  auto solver = MakeSolver(kSgd, RowsNet(4, 0));
  EXPECT_THAT([&] { solver->Step(1); }, ThrowsMessage<Error>(HasSubstr("no rows to train on")));
}

TEST(Solver, TreatsTwoHalfBatchesAsOneBatch) {
  auto whole = MakeSolver(std::string(kSgd), RowsNet(4, 8));
  auto halves = MakeSolver(std::string(kSgd) + "iter_size: 2", RowsNet(2, 8));
  whole->Step(6);
  halves->Step(6);
  EXPECT_TRUE(AllClose(Weights(*whole), Weights(*halves), 1e-5, 1e-7));
}

// Data-parallel training is exact: N solvers with batch size B/N equal one solver with batch size
// B, including clipping, iter_size, decay and history.
TEST(Solver, SeveralEqualOneSolverOnAllRows) {
  const std::string options = std::string(kSgd) + "clip_gradients: 0.05 iter_size: 2";
  const auto alone = TrainTogether(options, {RowsNet(4, 4)}, 10);
  const auto together = TrainTogether(options, {RowsNet(2, 2, 0), RowsNet(2, 2, 2)}, 10);
  EXPECT_TRUE(AllClose(together[0], alone[0], 1e-5, 1e-7));
  EXPECT_TRUE(Equal(together[0], together[1]));
}

TEST(Solver, WithoutRowsAppliesTheOthersGradients) {
  std::vector<std::vector<int64_t>> rows;
  const auto together =
      TrainTogether(kSgd, {RowsNet(2, 6), RowsNet(2, 3, 6), RowsNet(2, 0)}, 4, &rows);
  EXPECT_THAT(
      rows, ElementsAre(ElementsAre(2, 2, 2, 2), ElementsAre(2, 1, 0, 2), ElementsAre(0, 0, 0, 0)));
  EXPECT_TRUE(Equal(together[0], together[1]));
  EXPECT_TRUE(Equal(together[0], together[2]));
}

TEST(Solver, ClipsTheGradientToItsLimit) {
  auto free = MakeSolver("base_lr: 1 lr_policy: 'fixed'", RowsNet(4, 4));
  auto clipped = MakeSolver("base_lr: 1 lr_policy: 'fixed' clip_gradients: 0.01", RowsNet(4, 4));
  const Tensor before = Weights(*clipped);
  free->Step(1);
  clipped->Step(1);
  const double norm = std::sqrt(
      SumOfSquares(free->net().params().diff().data_ptr(), free->net().params().diff().numel()));
  EXPECT_GT(norm, 0.02);
  EXPECT_TRUE(AllClose(Sum(Weights(*clipped), before, -1),
                       Scaled(Sum(Weights(*free), before, -1), 0.01 / norm), 1e-3, 1e-7));
}

TEST(Solver, StopsAfterTheIterationOfTheRequest) {
  Solver* running = nullptr;
  IterationObserver observer([&](const IterationReport& report) {
    if (report.iteration == 3) running->RequestStop();
  });
  SolverOptions options;
  options.observer = &observer;
  auto solver = MakeSolver(std::string(kSgd) + "max_iter: 10 snapshot_after_train: false",
                           RowsNet(4, 8), std::move(options));
  running = solver.get();
  solver->Solve();
  EXPECT_EQ(solver->iteration(), 3);
  EXPECT_TRUE(solver->stopped());
}

TEST(Solver, RequestsValidationAtItsIntervals) {
  struct : SolverObserver {
    void Validate(int iteration) override { at.push_back(iteration); }
    std::vector<int> at;
  } observer;
  SolverOptions options;
  options.observer = &observer;
  options.validates = true;
  auto solver = MakeSolver(std::string(kSgd) +
                               "max_iter: 6 test_interval: 2 test_iter: 1 "
                               "snapshot_after_train: false",
                           RowsNet(4, 8), std::move(options));
  solver->Solve();
  EXPECT_THAT(observer.at, ElementsAre(0, 2, 4, 6));
  EXPECT_TRUE(solver->test_nets().empty());
}

TEST(Solver, RejectsInvalidParameters) {
  const auto fails = [](const std::string& text, const std::string& message) {
    EXPECT_THAT([&] { MakeSolver(text, RowsNet(4, 8)); }, ThrowsMessage<Error>(HasSubstr(message)));
  };
  fails(std::string(kSgd) + "iter_size: 0", "iter_size and average_loss must be at least 1");
  fails(std::string(kSgd) + "test_iter: 1", "test_iter but no test_interval");
  fails(std::string(kSgd) + "net: 'a'", "exactly one of net, net_param");
  fails(std::string(kSgd) + "snapshot: 1 snapshot_prefix: '/nowhere/a'",
        "cannot create /nowhere/a.probe");
}

}  // namespace
}  // namespace hearth::caffe
