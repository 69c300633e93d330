#include "hearth/caffe/tensor/tensor.h"

#include <gmock/gmock.h>

#include "hearth/base/testing/error_testing.h"
#include "hearth/caffe/tensor/tensor_error.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A tensor of this shape with the values 0, 1, 2, ...
Tensor Counted(const Shape& sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return Arange(count).view(sizes);
}

TEST(TensorTest, ViewsShareMemory) {
  const Tensor whole = Counted({2, 3});
  whole.select(1, 1).fill_(9);
  EXPECT_THAT(ListOf(whole), ElementsAre(0, 9, 2, 3, 9, 5));
  EXPECT_TRUE(whole.t().is_alias_of(whole));
  EXPECT_FALSE(whole.clone().is_alias_of(whole));
}

TEST(TensorTest, MemoryLivesAsLongAsAnyView) {
  Tensor view;
  {
    const Tensor whole = Counted({3, 2});
    view = whole.narrow(0, 1, 2);
  }
  EXPECT_THAT(ListOf(view), ElementsAre(2, 3, 4, 5));
}

TEST(TensorTest, SelectsAlongEveryAxis) {
  const Tensor x = Counted({2, 3, 2});
  EXPECT_THAT(ListOf(x.select(-1, 1)), ElementsAre(1, 3, 5, 7, 9, 11));
  EXPECT_THAT(ListOf(x.slice(1, 0, 3, 2)), ElementsAre(0, 1, 4, 5, 6, 7, 10, 11));
  EXPECT_THAT(ListOf(x.permute({2, 0, 1})), ElementsAre(0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11));
  EXPECT_THAT(x.unsqueeze(-1).sizes(), ElementsAre(2, 3, 2, 1));
  EXPECT_THAT(x.unsqueeze(0).squeeze(0).sizes(), ElementsAre(2, 3, 2));
  EXPECT_EQ(x.chunk(3, 1).size(), 3u);
}

// view() fails if no strides fit; reshape() makes a copy then.
TEST(TensorTest, ViewsOfTransposedMemoryAreCopiesOnlyIfTheyMustBe) {
  const Tensor x = Counted({2, 3, 4}).transpose(0, 1);  // 3 x 2 x 4
  const Tensor inner = x.view({3, 2, 2, 2});
  EXPECT_TRUE(inner.is_alias_of(x));
  EXPECT_EQ(ListOf(inner), ListOf(x));
  EXPECT_THAT(Thrown([&] { x.view({24}); }).message(), HasSubstr("has no view of shape [24]"));
  const Tensor flat = x.reshape({-1});
  EXPECT_FALSE(flat.is_alias_of(x));
  EXPECT_EQ(ListOf(flat), ListOf(x));
}

TEST(TensorTest, InfersOneSize) {
  EXPECT_THAT(Counted({2, 6}).view({3, -1}).sizes(), ElementsAre(3, 4));
  EXPECT_THAT(Tensor::Empty({0, 4}).view({-1, 4}).sizes(), ElementsAre(0, 4));
  EXPECT_THAT(Thrown([] { Counted({2, 6}).view({5, -1}); }).message(), HasSubstr("12 values"));
}

TEST(TensorTest, BroadcastsMissingAxesAndAxesOfSizeOne) {
  const Tensor x = Tensor::Zeros({2, 3});
  x.copy_(Tensor::Copy({1, 2, 3}));
  EXPECT_THAT(ListOf(x), ElementsAre(1, 2, 3, 1, 2, 3));
  x.add_(Tensor::Copy({10, 20}).view({2, 1}), 2);
  EXPECT_THAT(ListOf(x), ElementsAre(21, 22, 23, 41, 42, 43));
  x.mul_(0.5);
  EXPECT_EQ(x[1][2].item(), 21.5);
  EXPECT_THAT(ListOf(Tensor::Copy({1, 2}).view({2, 1}).expand({2, 2})), ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(Thrown([&] {
                x.add_(Tensor::Copy({1, 2}));
              }).message(),
              HasSubstr("[2] cannot be broadcast to [2, 3]"));
}

// Large enough for several threads, with every combination of memory orders.
TEST(TensorTest, CopiesBetweenMemoryOrders) {
  const Tensor x = Counted({70, 30, 40});
  for (const Shape& order : {Shape{0, 1, 2}, Shape{2, 1, 0}, Shape{1, 2, 0}}) {
    const Tensor from = x.permute(order), to = Tensor::Empty(from.sizes());
    to.copy_(from);
    EXPECT_TRUE(Equal(to, from));
    const Tensor back = Tensor::Empty(x.sizes());
    back.permute(order).copy_(from);
    EXPECT_TRUE(Equal(back, x));
  }
}

TEST(TensorTest, KnowsItsMemoryOrder) {
  const Tensor x = Tensor::Empty({2, 3, 4, 5});
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_FALSE(x.is_channels_last());
  const Tensor last = Tensor::Empty({2, 4, 5, 3}).permute({0, 3, 1, 2});
  EXPECT_TRUE(last.is_channels_last());
  EXPECT_FALSE(last.is_contiguous());
  EXPECT_TRUE(last.contiguous().is_contiguous());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(x.data_ptr()) % 64, 0u);
}

TEST(TensorTest, NamesPositionsThatDoNotExist) {
  const Tensor x = Counted({2, 3});
  EXPECT_THAT(Thrown([&] { x.size(2); }).message(), HasSubstr("2 axes has no axis 2"));
  EXPECT_THAT(Thrown([&] { x.select(0, 2); }).message(),
              HasSubstr("outside axis 0 of shape [2, 3]"));
  EXPECT_THAT(Thrown([&] { x.narrow(1, -1, 2); }).message(), HasSubstr("positions -1 to 1"));
  EXPECT_THAT(Thrown([&] { x.item(); }).message(), HasSubstr("6 values is not a single number"));
}

TEST(TensorTest, ReportsMemoryThatDoesNotExist) {
  const int64_t huge = int64_t{1} << 50;
  for (const auto make : {&Tensor::Empty, &Tensor::Zeros}) {
    try {
      make({huge});
      FAIL() << "allocated";
    } catch (const TensorError& error) {
      EXPECT_TRUE(error.out_of_memory());
      EXPECT_THAT(error.what(), HasSubstr(std::to_string(4 * huge) + " bytes"));
    }
  }
}

TEST(TensorTest, UsesTheMemoryOfTheCaller) {
  float values[] = {1, 2, 3, 4};
  const int64_t before = TensorBytesTaken();
  Tensor::Over(values, {2, 2}).t()[0].fill_(7);
  EXPECT_THAT(values, ElementsAre(7, 2, 7, 4));
  EXPECT_EQ(TensorBytesTaken(), before);
}

}  // namespace
}  // namespace hearth::caffe
