// Uses a simulated device, which calls the device library on the CPU. The tests check how arguments
// and results are passed, not the library's kernels.
#include "hearth/caffe/tensor/device_ops.h"

#include <gmock/gmock.h>

#include <functional>
#include <vector>

#include "hearth/base/testing/error_testing.h"
#include "hearth/caffe/tensor/tensor_error.h"
#include "hearth/caffe/tensor/testing/device_testing.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(DeviceOps, RefuseTensorsOfTheHost) {
  const Tensor x = Arange(3), y = Tensor::Empty({3});
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { device::abs_out(y, x); }, [&] { device::maximum(x, y); }, [&] { x.exp(); },
           [&] { x.sigmoid_(); }, [&] { x + y; }, [&] { device::ones_like(x); }}) {
    const Error error = Thrown(call);
    EXPECT_EQ(error.code(), ErrorCode::kInternal);
    EXPECT_THAT(error.message(), HasSubstr("got one in the host's"));
  }
}

class DeviceOpsTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      device_ = DeviceForTests().device;
      Tensor::ZerosOn(device_, {1});
    } catch (const Error& error) {
      GTEST_SKIP() << error.message();
    }
  }
  Tensor Here(const std::vector<float>& values) const { return On(device_, Tensor::Copy(values)); }

  Device device_;
};

TEST_F(DeviceOpsTest, CopyValuesInEveryDirectionAndOrder) {
  const Tensor host = Arange(6).view({2, 3});
  const Tensor there = On(device_, host);
  EXPECT_FALSE(there.on_host());
  EXPECT_EQ(there.device(), device_);
  EXPECT_THAT(ListOf(there.t()), ElementsAre(0, 3, 1, 4, 2, 5));
  const Tensor back = Tensor::Zeros({3, 2});
  back.t().copy_(there);
  EXPECT_THAT(ListOf(back), ElementsAre(0, 3, 1, 4, 2, 5));
  const Tensor other = Tensor::ZerosOn(device_, {2, 3}).copy_(there);
  EXPECT_FALSE(other.is_alias_of(there));
  EXPECT_EQ(ListOf(other), ListOf(there));
  const Tensor repeated = Tensor::Zeros({2, 3});
  repeated.copy_(there.select(0, 1));
  EXPECT_THAT(ListOf(repeated), ElementsAre(3, 4, 5, 3, 4, 5));
}

TEST_F(DeviceOpsTest, PassNumbersAsTheTypeOfTheTensor) {
  const Tensor longs = device::longs({5, 6}, device_);
  EXPECT_THAT(ListOf((longs * 2).to(HEARTH_FLOAT)), ElementsAre(10, 12));
  EXPECT_THAT(ListOf(Here({5, 6}) * 0.5), ElementsAre(2.5, 3));
  EXPECT_THAT(ListOf(1 - Here({5, 6})), ElementsAre(-4, -5));
  EXPECT_EQ(Here({1, 2, 3}).sum().item(), 6);
}

TEST_F(DeviceOpsTest, ViewsShareTheDevicesMemory) {
  const Tensor x = Here({1, 2, 3, 4}).view({2, 2});
  x[1].fill_(9);
  x.select(1, 0).add_(1);
  EXPECT_THAT(ListOf(x), ElementsAre(2, 2, 10, 9));
  EXPECT_TRUE(x.t().is_alias_of(x));
}

// An error has the library's message and leaves the device usable.
TEST_F(DeviceOpsTest, ReportTheLibrarysErrors) {
  const Tensor x = Here({1, 2}), y = Here({1, 2, 3});
  try {
    x + y;
    FAIL() << "no error";
  } catch (const TensorError& error) {
    EXPECT_FALSE(error.out_of_memory());
    EXPECT_THAT(error.what(), HasSubstr("2"));
  }
  EXPECT_THAT(ListOf(x + x), ElementsAre(2, 4));
}

}  // namespace
}  // namespace hearth::caffe
