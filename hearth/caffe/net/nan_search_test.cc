#include "hearth/caffe/net/nan_search.h"

#include <gmock/gmock.h>

#include <limits>

#include "hearth/caffe/net/testing/net_testing.h"

namespace hearth::caffe {
namespace {

using testing::HasSubstr;

// A net that computes 1 / x of the input's first value, which is infinite for 0.
constexpr char kNanNet[] = R"(
  layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 1 dim: 2 } } }
  layer { name: "ip" type: "InnerProduct" bottom: "x" top: "h"
          inner_product_param { num_output: 2 weight_filler { type: "constant" value: 1 } } }
  layer { name: "inverse" type: "Power" bottom: "h" top: "y" power_param { power: -1 } }
  layer { name: "sum" type: "Reduction" bottom: "y" top: "s" })";

class NanSearch : public testing::Test {
 protected:
  std::string After(float x) {
    net_.blob("x").data().fill_(x);
    net_.Forward();
    return FirstNonFinite(net_).text;
  }
  Net net_{ParseNet(kNanNet, "net"), ContextOf(TRAIN)};
};

TEST_F(NanSearch, NamesTheLayerThatProducedItFromFiniteValues) {
  EXPECT_EQ(After(0),
            "layer 'inverse' (Power) is the first to produce a non-finite value, in top 'y'");
}

TEST_F(NanSearch, NamesTheLayerWhoseParametersHaveIt) {
  net_.layer("ip").blobs()[1]->data().fill_(std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(After(1),
            "layer 'ip' (InnerProduct) is the first with a non-finite value, in parameter 1, since "
            "the last update");
}

TEST_F(NanSearch, NamesTheInputThatDeliversIt) {
  EXPECT_EQ(After(std::numeric_limits<float>::infinity()),
            "layer 'in' (Input) delivers a non-finite value, in top 'x'");
}

// A net in which two convolutions each multiply by their weight. The values of the second one
// overwrite those of the first.
std::string AfterTwoStages(float first_weight, float second_weight) {
  const auto stage = [](const std::string& name, const std::string& bottom) {
    const std::string relu = "r" + name, pool = "p" + name;
    return "layer { name: '" + name + "' type: 'Convolution' bottom: '" + bottom + "' top: '" +
           name +
           "' convolution_param { num_output: 1 kernel_size: 1 bias_term: false } } layer { name: "
           "'" +
           relu + "' type: 'ReLU' bottom: '" + name + "' top: '" + name + "' } layer { name: '" +
           pool + "' type: 'Pooling' bottom: '" + name + "' top: '" + pool +
           "' pooling_param { pool: MAX kernel_size: 2 stride: 2 } }";
  };
  const std::string text =
      "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 1 dim: 8 dim: 8 "
      "} } }" +
      stage("a", "x") + stage("b", "pa") +
      "layer { name: 's' type: 'Reduction' bottom: 'pb' top: 's' loss_weight: 1 }";
  NetContext context = ContextOf(TRAIN);
  context.share_diffs = true;
  Net net(ParseNet(text, "net"), context);
  EXPECT_EQ(net.short_lived().size(), 2u);
  EXPECT_EQ(net.blob("a").data_ptr(), net.blob("b").data_ptr());
  net.blob("x").data().fill_(2);
  net.layer("a").blobs()[0]->data().fill_(first_weight);
  net.layer("b").blobs()[0]->data().fill_(second_weight);
  net.Forward();
  return FirstNonFinite(net).text;
}

TEST(NanSearchInSharedMemory, NamesTheLayerThatProducedItThoughItsTopWasOverwritten) {
  EXPECT_THAT(AfterTwoStages(1, 3e38f), HasSubstr("layer 'b' (Convolution) is the first"));
  EXPECT_THAT(AfterTwoStages(3e38f, 1), HasSubstr("layer 'a' (Convolution) is the first"));
  EXPECT_THAT(AfterTwoStages(1, 1), HasSubstr("no layer has a"));
}

TEST_F(NanSearch, FindsNothingInFiniteValues) {
  EXPECT_EQ(After(1), "no layer has a non-finite value now");
}

}  // namespace
}  // namespace hearth::caffe
