#include "hearth/caffe/net/net_layout.h"

#include <gtest/gtest.h>

#include "hearth/caffe/net/net.h"
#include "hearth/caffe/upgrade/net_file.h"

namespace hearth::caffe {
namespace {

constexpr char kImageNet[] = R"(
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } } }
layer { name: "c" type: "Convolution" bottom: "x" top: "c"
        convolution_param { num_output: 4 kernel_size: 3 } }
layer { name: "r" type: "ReLU" bottom: "c" top: "c" }
layer { name: "p" type: "Pooling" bottom: "c" top: "p"
        pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "d" type: "Convolution" bottom: "p" top: "d"
        convolution_param { num_output: 4 kernel_size: 1 } }
layer { name: "n" type: "LRN" bottom: "d" top: "n" }
layer { name: "a" type: "Eltwise" bottom: "n" bottom: "d" top: "a" }
layer { name: "q" type: "Pooling" bottom: "a" top: "q" pooling_param { kernel_size: 3 } }
layer { name: "i" type: "InnerProduct" bottom: "q" top: "i"
        inner_product_param { num_output: 2 } }
layer { name: "s" type: "Scale" bottom: "d" top: "s" }
)";

Layout LayoutOf(Net& net, const std::string& blob) { return net.blob(blob).layout(); }

TEST(NetLayout, IsChannelsLastBetweenLayersThatSupportIt) {
  Net net(ParseNet(kImageNet, "net"), {});
  EXPECT_EQ(LayoutOf(net, "c"), Layout::kChannelsLast);
  EXPECT_EQ(LayoutOf(net, "p"), Layout::kChannelsLast);
}

TEST(NetLayout, InputsOutputsAndBlobsOfOtherLayersAreRowMajor) {
  Net net(ParseNet(kImageNet, "net"), {});
  for (const char* blob : {"x", "q", "i", "s"}) {
    EXPECT_EQ(LayoutOf(net, blob), Layout::kContiguous) << blob;
  }
}

TEST(NetLayout, AnOutputThatALayerComputesInPlaceIsRowMajor) {
  constexpr char kEndsInPlace[] = R"(
    layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } } }
    layer { name: "c" type: "Convolution" bottom: "x" top: "c"
            convolution_param { num_output: 4 kernel_size: 3 } }
    layer { name: "r" type: "ReLU" bottom: "c" top: "c" }
  )";
  Net net(ParseNet(kEndsInPlace, "net"), {});
  EXPECT_EQ(LayoutOf(net, "c"), Layout::kContiguous);
}

TEST(NetLayout, OneUnsupportedLayerDecidesForAllThatShareItsBlob) {
  // The Scale layer needs d in row-major order, which also determines the layout of d's splits, n
  // and a.
  Net net(ParseNet(kImageNet, "net"), {});
  for (const char* blob : {"d", "d_d_0_split_0", "n", "a"}) {
    EXPECT_EQ(LayoutOf(net, blob), Layout::kContiguous) << blob;
  }
}

}  // namespace
}  // namespace hearth::caffe
