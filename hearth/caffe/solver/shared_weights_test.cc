// Solvers on several threads that share one set of weights and history.
#include <gmock/gmock.h>

#include <array>
#include <barrier>
#include <thread>

#include "hearth/caffe/net/testing/net_testing.h"
#include "hearth/caffe/solver/solver.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

constexpr int kThreads = 3;

std::unique_ptr<Solver> MakeSharing(const std::string& text, const std::string& middle = "") {
  SolverParameter param =
      ParseSolver("base_lr: 0.1 lr_policy: 'fixed' weight_decay: 0.01 " + text, "solver");
  *param.mutable_net_param() = ParseNet(RowsNet(4, 10, 0, middle), "net");
  SolverOptions options;
  options.seed = 5;
  options.registry = &TestRegistry();
  return std::make_unique<Solver>(param, std::move(options));
}

class SharedWeights : public testing::TestWithParam<const char*> {};

TEST_P(SharedWeights, AreOneArrayAndTrainLikeThoseOfOneSolver) {
  auto alone = MakeSharing(GetParam());
  alone->Step(6);
  std::array<std::unique_ptr<Solver>, kThreads> solvers;
  for (auto& solver : solvers) solver = MakeSharing(GetParam());
  // `computed` replaces the barrier of the gradient reduction, so that no solver updates weights
  // that another solver still reads.
  std::barrier<> updated(kThreads), computed(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    solvers[i]->ShareWeights(*solvers[0], i, kThreads, [&] { updated.arrive_and_wait(); });
  }
  std::vector<std::thread> threads;
  for (auto& solver : solvers) {
    solver->net().set_on_gradient_ready([&](size_t index) {
      if (index == 0) computed.arrive_and_wait();  // the last gradient that backward computes
    });
    threads.emplace_back([&] { solver->Step(6); });
  }
  for (std::thread& thread : threads) thread.join();
  for (auto& solver : solvers) {
    EXPECT_EQ(solver->net().params().data().data_ptr(),
              solvers[0]->net().params().data().data_ptr());
    EXPECT_TRUE(Equal(solver->net().params().data(), alone->net().params().data()));
    for (size_t j = 0; j < alone->history().size(); ++j) {
      EXPECT_EQ(solver->history()[j].data_ptr(), solvers[0]->history()[j].data_ptr());
      EXPECT_TRUE(Equal(solver->history()[j], alone->history()[j]));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Solvers, SharedWeights,
                         testing::Values("momentum: 0.9", "type: 'Adam' momentum: 0.9",
                                         "momentum: 0.9 clip_gradients: 0.1"));

TEST(CanShareWeights, IsFalseIfForwardWritesThem) {
  EXPECT_TRUE(MakeSharing("")->CanShareWeights());
  EXPECT_FALSE(MakeSharing("", "layer { name: 'bn' type: 'BatchNorm' bottom: 'h' top: 'h' }")
                   ->CanShareWeights());
}

}  // namespace
}  // namespace hearth::caffe
