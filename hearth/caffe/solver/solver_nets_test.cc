#include "hearth/caffe/solver/solver_nets.h"

#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/upgrade/net_file.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;

TEST(TrainNetOf, MergesStates) {
  const NetParameter net = TrainNetOf(ParseSolver(
      "net_param { name: 'n' state { stage: 'a' level: 1 } } train_state { stage: 'b' level: 2 }",
      "s"));
  EXPECT_EQ(net.state().phase(), TRAIN);
  EXPECT_EQ(net.state().level(), 2);
  EXPECT_THAT(net.state().stage(), ElementsAre("a", "b"));
}

TEST(TestNetsOf, PutsTheSharedNetLast) {
  const auto nets = TestNetsOf(ParseSolver(
      "net_param { name: 'shared' } test_net_param { name: 'own' } test_iter: 1 test_iter: 2 "
      "test_state { stage: 'x' } test_state { stage: 'y' }",
      "s"));
  ASSERT_EQ(nets.size(), 2u);
  EXPECT_EQ(nets[0].name(), "own");
  EXPECT_EQ(nets[1].name(), "shared");
  EXPECT_EQ(nets[1].state().phase(), TEST);
  EXPECT_THAT(nets[1].state().stage(), ElementsAre("y"));
}

TEST(TestNetsOf, ChecksTheNumberOfTestItersAndStates) {
  EXPECT_THROW(TestNetsOf(ParseSolver("net_param { } test_net_param { } ", "s")), Error);
  EXPECT_THROW(TestNetsOf(ParseSolver("train_net: 'a' test_iter: 1", "s")), Error);
  EXPECT_THROW(
      TestNetsOf(ParseSolver("net_param { } test_iter: 1 test_iter: 1 test_state { }", "s")),
      Error);
}

}  // namespace
}  // namespace hearth::caffe
