#include "hearth/caffe/net/memory_plan.h"

#include <gtest/gtest.h>

#include "hearth/caffe/net/net.h"
#include "hearth/caffe/net/testing/net_testing.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"
#include "hearth/caffe/upgrade/net_file.h"

namespace hearth::caffe {
namespace {

constexpr char kDeepNet[] = R"(
layer { name: "x" type: "Input" top: "x" top: "y"
        input_param { shape { dim: 8 dim: 50 } shape { dim: 8 dim: 5 } } }
layer { name: "a" type: "InnerProduct" bottom: "x" top: "a"
        inner_product_param { num_output: 60 weight_filler { type: "xavier" } } }
layer { name: "ar" type: "TanH" bottom: "a" top: "ar" }
layer { name: "b" type: "InnerProduct" bottom: "ar" top: "b"
        inner_product_param { num_output: 60 weight_filler { type: "xavier" } } }
layer { name: "br" type: "TanH" bottom: "b" top: "br" }
layer { name: "c" type: "InnerProduct" bottom: "br" top: "c"
        inner_product_param { num_output: 60 weight_filler { type: "xavier" } } }
layer { name: "two" type: "Eltwise" bottom: "c" bottom: "ar" top: "two" }
layer { name: "flat" type: "Flatten" bottom: "two" top: "flat" }
layer { name: "d" type: "InnerProduct" bottom: "flat" top: "d"
        inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "d" bottom: "y" top: "loss" }
)";

NetContext Context(bool share_diffs) {
  NetContext context;
  context.share_diffs = share_diffs;
  context.random = std::make_shared<Random>(1);
  return context;
}

TEST(DiffPlan, ParameterGradientsAreEqual) {
  Net plain(ParseNet(kDeepNet, "net"), Context(false));
  Net shared(ParseNet(kDeepNet, "net"), Context(true));
  for (int i = 0; i < 2; ++i) {
    Step(plain);
    Step(shared);
    EXPECT_TRUE(Equal(plain.params().diff(), shared.params().diff()));
  }
}

TEST(DiffPlan, NeedsLessMemoryThanSeparateBuffers) {
  Net net(ParseNet(kDeepNet, "net"), Context(true));
  EXPECT_GE(net.diff_plan().blobs, 5);
  EXPECT_LT(net.diff_plan().planned_bytes, net.diff_plan().separate_bytes * 7 / 10);
  EXPECT_GT(net.diff_plan().planned_bytes, 0);
}

TEST(DiffPlan, IsCreatedOnlyOnRequest) {
  Net net(ParseNet(kDeepNet, "net"), Context(false));
  EXPECT_EQ(net.diff_plan().blobs, 0);
}

TEST(DataPlan, OutputsAreEqualInLessMemory) {
  NetContext context = Context(false);
  Net plain(ParseNet(kDeepNet, "net"), context);
  context.random = std::make_shared<Random>(1);
  context.share_data = true;
  context.kept_blobs = {"b"};
  Net shared(ParseNet(kDeepNet, "net"), context);
  for (int i = 0; i < 2; ++i) {
    for (Net* net : {&plain, &shared}) SetInputs(*net);
    EXPECT_EQ(plain.Forward(), shared.Forward());
    EXPECT_TRUE(Equal(plain.blob("b").data(), shared.blob("b").data()));
  }
  EXPECT_FALSE(Equal(plain.blob("a").data(), shared.blob("a").data())) << "nothing is shared";
  EXPECT_GE(shared.data_plan().blobs, 5);
  EXPECT_LE(shared.data_plan().planned_bytes, shared.data_plan().separate_bytes * 7 / 10);
}

}  // namespace
}  // namespace hearth::caffe
