#include "hearth/caffe/net/relu_gates.h"

#include <gtest/gtest.h>

#include "hearth/caffe/net/net.h"
#include "hearth/caffe/net/testing/net_testing.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"
#include "hearth/caffe/upgrade/net_file.h"

namespace hearth::caffe {
namespace {

constexpr char kStart[] = R"(
layer { name: "x" type: "Input" top: "x" top: "y"
        input_param { shape { dim: 4 dim: 3 dim: 11 dim: 11 } shape { dim: 4 dim: 5 } } }
layer { name: "a" type: "Convolution" bottom: "x" top: "a"
        convolution_param { num_output: 6 kernel_size: 3 weight_filler { type: "xavier" } } }
)";
constexpr char kEnd[] = R"(
layer { name: "d" type: "InnerProduct" bottom: "p" top: "d"
        inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "d" bottom: "y" top: "loss" }
)";
constexpr char kRelu[] = "layer { name: 'r' type: 'ReLU' bottom: 'a' top: 'a' }";
constexpr char kPool[] = R"(layer { name: "p" type: "Pooling" bottom: "a" top: "p"
        pooling_param { pool: MAX kernel_size: 3 stride: 2 } })";

std::unique_ptr<Net> GatedNet(const std::string& middle, bool share_diffs) {
  NetContext context = ContextOf(TRAIN);
  context.share_diffs = share_diffs;
  return std::make_unique<Net>(ParseNet(kStart + middle + kEnd, "net"), context);
}

bool IsFreed(Net& net) {
  Blob& blob = net.blob("a");
  return blob.data_ptr() == blob.diff_ptr();
}

TEST(ReluGates, GradientsAreEqualIfTheValuesMemoryIsReused) {
  const std::string middle = std::string(kRelu) + kPool;
  const auto plain = GatedNet(middle, false), shared = GatedNet(middle, true);
  EXPECT_FALSE(IsFreed(*plain));
  EXPECT_TRUE(IsFreed(*shared));
  EXPECT_EQ(shared->diff_plan().values, 1);
  EXPECT_GE(shared->diff_plan().separate_bytes - shared->diff_plan().planned_bytes,
            shared->blob("a").count() * 4);
  for (int i = 0; i < 2; ++i) {
    Step(*plain);
    Step(*shared);
    EXPECT_TRUE(Equal(plain->params().diff(), shared->params().diff()));
  }
}

class ReluGatesStay : public ::testing::TestWithParam<std::string> {};

TEST_P(ReluGatesStay, IfValuesAreReadAgain) {
  const auto plain = GatedNet(GetParam(), false), shared = GatedNet(GetParam(), true);
  EXPECT_FALSE(IsFreed(*shared));
  Step(*plain);
  Step(*shared);
  EXPECT_TRUE(Equal(plain->params().diff(), shared->params().diff()));
}

INSTANTIATE_TEST_SUITE_P(
    Nets, ReluGatesStay,
    ::testing::Values(
        "layer { name: 'r' type: 'ReLU' bottom: 'a' top: 'a' relu_param { negative_slope: 0.1 } }" +
            std::string(kPool),
        "layer { name: 'r' type: 'TanH' bottom: 'a' top: 'a' }" + std::string(kPool),
        // Two in-place layers, no in-place layer, and a pooling layer whose top is overwritten.
        std::string(kRelu) + "layer { name: 's' type: 'Sigmoid' bottom: 'a' top: 'a' }" + kPool,
        kPool,
        std::string(kRelu) + kPool + "layer { name: 's' type: 'Sigmoid' bottom: 'p' top: 'p' }",
        // A second reader of the blob, and other layers than max pooling.
        std::string(kRelu) + kPool + "layer { name: 'n' type: 'Silence' bottom: 'a' }",
        std::string(kRelu) + R"(layer { name: "p" type: "Pooling" bottom: "a" top: "p"
            pooling_param { pool: AVE kernel_size: 3 stride: 2 } })",
        std::string(kRelu) + R"(layer { name: "n" type: "LRN" bottom: "a" top: "p" })"));

}  // namespace
}  // namespace hearth::caffe
