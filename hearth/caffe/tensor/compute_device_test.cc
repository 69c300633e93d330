#include "hearth/caffe/tensor/compute_device.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <string>

#include "hearth/base/testing/error_testing.h"

namespace hearth::caffe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ComputeDeviceTest : public testing::Test {
 protected:
  ~ComputeDeviceTest() override { unsetenv("HEARTH_SIMULATED_GPUS"); }
};

TEST_F(ComputeDeviceTest, AVariableSimulatesDevices) {
  setenv("HEARTH_SIMULATED_GPUS", "3", 1);
  EXPECT_EQ(CountCudaDevices(), 3u);
}

TEST_F(ComputeDeviceTest, TheVariableMustBeASmallNumber) {
  for (const char* wrong : {"some", "-1", "2x", "1000000"}) {
    setenv("HEARTH_SIMULATED_GPUS", wrong, 1);
    const Error error = Thrown([] { CountCudaDevices(); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << wrong;
    EXPECT_THAT(error.message(), HasSubstr(std::string("HEARTH_SIMULATED_GPUS=") + wrong));
  }
}

TEST_F(ComputeDeviceTest, AMissingDeviceIsNamedWithTheNumberThereIs) {
  setenv("HEARTH_SIMULATED_GPUS", "2", 1);
  EXPECT_THAT(Thrown([] { CudaDevice(2); }).message(),
              AllOf(HasSubstr("no CUDA device 2"), HasSubstr("can use 2")));
}

}  // namespace
}  // namespace hearth::caffe
