#include "hearth/trainer/step/compute_devices.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include "hearth/base/error.h"

namespace hearth::trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

TEST(ParseGpus, TakesNumbersAndAll) {
  EXPECT_THAT(ParseGpus("", 2), IsEmpty());
  EXPECT_THAT(ParseGpus("all", 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(ParseGpus("1,0", 2), ElementsAre(1, 0));
  for (const char* wrong : {"2", "-1", "0,x", "0,,1"}) {
    EXPECT_THAT([=] { ParseGpus(wrong, 2); }, ThrowsMessage<Error>(HasSubstr("no device \"")));
  }
}

class ChooseDeviceTest : public testing::Test {
 protected:
  ~ChooseDeviceTest() override { unsetenv("HEARTH_SIMULATED_GPUS"); }

  caffe::SolverParameter cpu_ = [] {
    caffe::SolverParameter solver;
    solver.set_solver_mode(caffe::SolverParameter::CPU);
    return solver;
  }();
  caffe::SolverParameter gpu_;
};

TEST_F(ChooseDeviceTest, FollowsTheSolverModeIfThereAreGpus) {
  setenv("HEARTH_SIMULATED_GPUS", "2", 1);
  EXPECT_EQ(ChooseDevice({}, cpu_, 0), caffe::ComputeDevice());
  EXPECT_TRUE(ChooseDevice({}, gpu_, 3).separate);
  EXPECT_TRUE(ChooseDevice({1}, cpu_, 0).separate) << "named devices take precedence over the mode";
  EXPECT_THAT([] { FindGpus("2"); }, ThrowsMessage<Error>(HasSubstr("this machine has 2")));
}

TEST_F(ChooseDeviceTest, IsTheCpuWithoutGpus) {
  if (caffe::CountCudaDevices() > 0) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_THAT(FindGpus("0"), IsEmpty());
  EXPECT_EQ(ChooseDevice({}, gpu_, 0), caffe::ComputeDevice());
}

}  // namespace
}  // namespace hearth::trainer
