#include "hearth/caffe/net/net_graph.h"

#include <gmock/gmock.h>

#include "hearth/base/testing/error_testing.h"
#include "hearth/caffe/net/layer_error.h"
#include "hearth/caffe/net/testing/net_testing.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kGraphInput[] =
    "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } } }";

NetGraph GraphOf(const std::string& layers) {
  return BuildNetGraph(ParseNet(kGraphInput + layers, "net"), ContextOf(TRAIN), TestRegistry());
}

TEST(NetGraphTest, InPlaceTopsAreOneBlob) {
  const NetGraph graph = GraphOf(
      "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y' "
      "inner_product_param { num_output: 4 } }"
      "layer { name: 'r' type: 'ReLU' bottom: 'y' top: 'y' }");
  EXPECT_THAT(graph.blob_names, ElementsAre("x", "y"));
  EXPECT_THAT(graph.layers[2].bottom_ids, ElementsAre(1));
  EXPECT_THAT(graph.layers[2].top_ids, ElementsAre(1));
  EXPECT_THAT(graph.blobs[1]->shape(), ElementsAre(2, 4)) << "every layer is reshaped in order";
  EXPECT_THAT(graph.inputs, ElementsAre("x"));
  EXPECT_THAT(graph.outputs, ElementsAre("y"));
}

// Tops that no layer reads are the net's outputs, sorted by name as in Caffe.
TEST(NetGraphTest, OutputsAreTheTopsWithoutAReader) {
  const NetGraph graph = GraphOf(
      "layer { name: 's' type: 'Slice' bottom: 'x' top: 'c' top: 'a' top: 'b' }"
      "layer { name: 'r' type: 'ReLU' bottom: 'a' top: 'd' }");
  EXPECT_THAT(graph.outputs, ElementsAre("b", "c", "d"));
}

TEST(NetGraphTest, OnlyALossHasAWeightByDefault) {
  const NetGraph graph = GraphOf(
      "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y' "
      "inner_product_param { num_output: 3 } }"
      "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'y' bottom: 'x' top: 'l' }");
  EXPECT_THAT(graph.layers[1].loss_weights, ElementsAre(0));
  EXPECT_THAT(graph.layers[2].loss_weights, ElementsAre(1));
  EXPECT_TRUE(graph.layers[2].need_backward);
  EXPECT_THAT(graph.layers[2].bottom_need_backward, ElementsAre(true, false));
}

// The prototxt of a loss layer may omit its top.
TEST(NetGraphTest, ALossWithoutATopGetsOne) {
  const NetGraph graph = GraphOf(
      "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y' "
      "inner_product_param { num_output: 3 } }"
      "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'y' bottom: 'x' }");
  ASSERT_EQ(graph.layers[2].top.size(), 1u);
  EXPECT_THAT(graph.outputs, ElementsAre());
}

TEST(NetGraphTest, NamesTheLayerThatIsConnectedWrongly) {
  const std::pair<const char*, const char*> cases[] = {
      {"layer { name: 'bad' type: 'ReLU' bottom: 'z' top: 'y' }",
       "no earlier layer has the top 'z'"},
      {"layer { name: 'bad' type: 'ReLU' bottom: 'x' bottom: 'x' top: 'y' }",
       "takes exactly 1 bottom(s), but the prototxt has 2"},
      {"layer { name: 'bad' type: 'Concat' top: 'y' }", "takes at least 1 bottom(s)"},
      {"layer { name: 'bad' type: 'Input' top: 'x' }", "already the top of an earlier layer"},
      {"layer { name: 'bad' type: 'ReLU' bottom: 'x' top: 'y' blobs { } }",
       "blobs is given 1 time(s), but the layer has 0"},
      {"layer { name: 'bad' type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param { "
       "num_output: 1 bias_term: false } blobs { shape { dim: 2 } data: 1 data: 2 } }",
       "but `blobs` in the prototxt has 2 (2)"},
  };
  for (const auto& [layer, message] : cases) {
    const Error error = Thrown([&, text = layer] { GraphOf(text); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << layer;
    EXPECT_THAT(error.message(), testing::StartsWith("layer 'bad' (")) << layer;
    EXPECT_THAT(error.message(), HasSubstr(message));
  }
}

}  // namespace
}  // namespace hearth::caffe
