// Runs against the stand-in for the CUDA driver.
#include "hearth/collective/device/cuda_api.h"

#include <gtest/gtest.h>

#include "hearth/base/testing/error_testing.h"

namespace hearth::collective::cuda {
namespace {

constexpr Result kInvalidArgument = 1;
constexpr Result kUnknownResult = 9999;

TEST(CudaLibrary, IsLoadedOnceWithAllFunctions) {
  EXPECT_EQ(Library().problem, "");
  const Api& api = Library().Get();
  EXPECT_EQ(&api, &Library().Get());
  int device = -1;
  EXPECT_EQ(api.device_get(&device, 3), kSuccess);
  EXPECT_EQ(device, 3);
}

TEST(CudaCheck, SaysWhatFailedAndWhy) {
  const Api& api = Library().Get();
  EXPECT_NO_THROW(Check(api, kSuccess, "start"));
  const Error error = Thrown([&] { Check(api, kInvalidArgument, "find the device"); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(error.message(), "CUDA cannot find the device: invalid argument");
}

TEST(CudaCheck, ShowsTheNumberOfAnErrorWithoutText) {
  const Error error = Thrown([] { Check(Library().Get(), kUnknownResult, "start"); });
  EXPECT_EQ(error.message(), "CUDA cannot start: error 9999");
}

}  // namespace
}  // namespace hearth::collective::cuda
