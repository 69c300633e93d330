#include "hearth/caffe/tensor/synced_array.h"

#include <gtest/gtest.h>

#include "hearth/caffe/tensor/blob.h"
#include "hearth/caffe/tensor/testing/device_testing.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

float FirstOf(const Tensor& tensor) { return tensor.flatten()[0].item(); }

TEST(SyncedArray, UpdatesEachSideOnRequest) {
  SyncedArray array(3, DeviceForTests());
  array.host().fill_(1);
  EXPECT_EQ(FirstOf(array.device()), 1);
  array.device().fill_(2);
  EXPECT_EQ(FirstOf(array.host()), 2);
  EXPECT_NE(array.host().data_ptr(), array.device().data_ptr());
}

TEST(SyncedArray, StartsWithZerosOnEitherSide) {
  EXPECT_EQ(FirstOf(SyncedArray(1, DeviceForTests()).device()), 0);
  SyncedArray array(1, DeviceForTests());
  EXPECT_EQ(FirstOf(array.host()), 0);
  EXPECT_EQ(FirstOf(array.device()), 0);
}

TEST(SyncedArray, AllocatesBothSidesOnFirstUse) {
  int taken = 0;
  const Tensor host = Tensor::Zeros({2}), device = Tensor::Zeros({2});
  SyncedArray array(2, ComputeDevice::Simulated(), [&] {
    ++taken;
    return std::pair(host, device);
  });
  EXPECT_EQ(taken, 0);
  array.device().fill_(3);
  EXPECT_EQ(array.device().data_ptr(), device.data_ptr());
  EXPECT_EQ(FirstOf(array.host()), 3);
  EXPECT_EQ(array.host().data_ptr(), host.data_ptr());
  EXPECT_EQ(taken, 1);
}

TEST(SyncedArray, DoesNotCopyAfterReading) {
  SyncedArray array(1, DeviceForTests());
  array.device().fill_(2);
  EXPECT_EQ(FirstOf(array.host_to_read()), 2);
  array.host_to_read().fill_(7);  // not allowed, but shows whether a copy is made
  EXPECT_EQ(FirstOf(array.device()), 2);
}

TEST(SyncedArray, KeepsTheHostsCopyValidIfTheDeviceOnlyReads) {
  SyncedArray array(1, DeviceForTests());
  array.host().fill_(2);
  EXPECT_EQ(FirstOf(array.device_to_read()), 2);
  array.device_to_read().fill_(7);  // not allowed, but shows whether a copy is made
  EXPECT_EQ(FirstOf(array.host_to_read()), 2);
  array.host().fill_(3);
  EXPECT_EQ(FirstOf(array.device_to_read()), 3);
}

class ClearedArray : public testing::TestWithParam<bool> {
 protected:
  SyncedArray Cleared() {
    SyncedArray array(1, GetParam() ? DeviceForTests() : ComputeDevice());
    array.host().fill_(5);
    array.device();
    array.SetZero();
    return array;
  }
};

TEST_P(ClearedArray, IsZeroOnWhicheverSideIsRequested) {
  EXPECT_EQ(FirstOf(Cleared().host()), 0);
  EXPECT_EQ(FirstOf(Cleared().device()), 0);
  EXPECT_EQ(FirstOf(Cleared().host_to_read()), 0);
}

TEST_P(ClearedArray, IsFilledOnlyOnce) {
  SyncedArray array = Cleared();
  array.host().fill_(3);
  EXPECT_FALSE(array.is_zero());
  EXPECT_EQ(FirstOf(array.device()), 3);
  EXPECT_EQ(FirstOf(array.host()), 3);
}

TEST_P(ClearedArray, IsNotFilledForACallerThatOverwritesIt) {
  SyncedArray array = Cleared();
  EXPECT_EQ(FirstOf(array.device_to_overwrite()), 5);
  array.device_to_overwrite().fill_(3);
  EXPECT_EQ(FirstOf(array.host()), 3);
}

INSTANTIATE_TEST_SUITE_P(Memories, ClearedArray, testing::Values(false, true));

TEST(Blob, ReportsWhetherToAddToItsGradient) {
  Blob a({2}), b({2});
  b.ShareDiff(a);
  a.diff().fill_(5);
  EXPECT_EQ(a.diff_to_add_to().beta, 1);
  a.ClearDiff();
  EXPECT_EQ(b.diff_to_add_to().beta, 0);
  EXPECT_EQ(a.diff_to_add_to().beta, 1);
}

TEST(SyncedArray, IsOneCopyOnTheCpu) {
  SyncedArray array(1, {});
  EXPECT_EQ(array.host().data_ptr(), array.device().data_ptr());
}

TEST(Blob, SharesBothSides) {
  Blob a({2}), b({2});
  for (Blob* blob : {&a, &b}) blob->set_device(DeviceForTests());
  b.ShareData(a);
  a.device_data().fill_(3);
  EXPECT_EQ(FirstOf(b.data()), 3);
  b.data().fill_(4);
  EXPECT_EQ(FirstOf(a.device_data()), 4);
}

TEST(Blob, AdoptsADevicesValuesWithoutACopyForAllThatShareIt) {
  Blob a({2}), b({1, 2});
  for (Blob* blob : {&a, &b}) blob->set_device(DeviceForTests());
  b.ShareData(a);
  b.device_data().fill_(1);
  const Tensor values = a.device_data() + 4;
  a.SetDeviceData(values);
  EXPECT_TRUE(a.device_data().is_alias_of(values));
  EXPECT_EQ(FirstOf(b.device_data()), 5);
  EXPECT_EQ(FirstOf(b.data()), 5);
  b.data().fill_(6);
  EXPECT_EQ(FirstOf(a.device_data()), 6);
}

TEST(Blob, CopiesADevicesValuesOfAnotherLayout) {
  Blob blob({2, 2});
  blob.set_device(DeviceForTests());
  blob.device_data();
  const Tensor values = On(blob.device_data().device(), Arange(4).view({2, 2}));
  blob.SetDeviceData(values.t());
  EXPECT_TRUE(Equal(blob.data(), Tensor::Copy({0.f, 2.f, 1.f, 3.f}).view({2, 2})));
}

TEST(Blob, OverwritesAClearedGradientAndAddsToOthers) {
  Blob blob({2});
  blob.set_device(DeviceForTests());
  blob.diff().fill_(9);
  blob.ClearDiff();
  for (const float sum : {2.f, 4.f}) {
    blob.AddToDeviceDiff(On(blob.device_diff().device(), Full({2}, 2)));
    EXPECT_EQ(FirstOf(blob.diff()), sum);
  }
}

TEST(Blob, KeepsItsValuesWhenSetToADevice) {
  Blob blob({2});
  blob.data().fill_(5);
  blob.set_device(DeviceForTests());
  EXPECT_EQ(FirstOf(blob.device_data()), 5);
}

}  // namespace
}  // namespace hearth::caffe
