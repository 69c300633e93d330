#include "hearth/caffe/solver/train_display.h"

#include <gmock/gmock.h>

namespace hearth::caffe {
namespace {

TEST(TrainDisplay, AveragesTheLastLosses) {
  SolverParameter param;
  param.set_average_loss(2);
  TrainDisplay display(param);
  for (const float loss : {8.0f, 2.0f, 4.0f}) display.AddLoss(loss);
  EXPECT_FLOAT_EQ(display.smoothed_loss(), 3);
  EXPECT_THAT(display.losses(), testing::ElementsAre(2, 4));
}

TEST(TrainDisplay, ContinuesTheAverageOfASnapshot) {
  SolverParameter param;
  param.set_average_loss(3);
  TrainDisplay display(param);
  display.set_losses({1, 2});
  display.AddLoss(6);
  EXPECT_FLOAT_EQ(display.smoothed_loss(), 3);
}

TEST(TrainDisplay, IsDueAtItsInterval) {
  SolverParameter param;
  EXPECT_FALSE(TrainDisplay(param).IsDue(0)) << "off by default";
  param.set_display(20);
  const TrainDisplay display(param);
  EXPECT_TRUE(display.IsDue(0) && display.IsDue(40));
  EXPECT_FALSE(display.IsDue(30));
}

}  // namespace
}  // namespace hearth::caffe
