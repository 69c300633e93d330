#include "hearth/caffe/nan_search.h"

#include <gmock/gmock.h>

#include <limits>

#include "hearth/caffe/test_nets.h"

namespace hearth::caffe {
namespace {

using testing::HasSubstr;

// 1 / x of the input's first value: infinite where that is 0.
constexpr char kNet[] = R"(
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
    return FirstNonFinite(net_);
  }
  Net net_{ParseNet(kNet, "net"), ContextOf(TRAIN)};
};

TEST_F(NanSearch, NamesTheLayerThatMadeItOfFiniteValues) {
  EXPECT_EQ(After(0), "layer 'inverse' (Power) is the first to produce it, in top 'y'");
}

TEST_F(NanSearch, NamesTheLayerWhoseParametersHoldIt) {
  net_.layer("ip").blobs()[1]->data().fill_(std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(After(1),
            "layer 'ip' (InnerProduct) has it first, in parameter 1, since the last update");
}

TEST_F(NanSearch, NamesTheInputThatBringsIt) {
  EXPECT_EQ(After(std::numeric_limits<float>::infinity()),
            "layer 'in' (Input) delivers it, in top 'x'");
}

TEST_F(NanSearch, FindsNothingInFiniteValues) { EXPECT_EQ(After(1), "no layer holds it any more"); }

}  // namespace
}  // namespace hearth::caffe
