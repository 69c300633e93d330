// Tests that building a net takes time proportional to its number of layers, even for very many
// layers.
#include <gtest/gtest.h>

#include <ctime>
#include <string>

#include "hearth/caffe/net/testing/net_testing.h"

namespace hearth::caffe {
namespace {

constexpr int kLayers = 20000;
// A limit for processor time, which does not depend on other processes. It is exceeded if building
// a net runs a loop over all layers for each layer.
constexpr double kMaxSeconds = 6;

// A net of a data layer and many copies of `layer`, in which {0} is replaced with the copy's number
// and {1} with the number of the previous copy.
std::string ManyLayers(const char* layer) {
  std::string text =
      "force_backward: true layer { name: 'data' type: 'Input' top: 'b0' input_param { shape { "
      "dim: 1 dim: 2 } } }\n";
  for (int i = 1; i <= kLayers; ++i) text += fmt::format(fmt::runtime(layer), i, i - 1) + "\n";
  return text;
}

void ExpectSoon(const std::string& text, bool forward_only = false) {
  const std::clock_t start = std::clock();
  NetContext context = ContextOf(TRAIN);
  context.share_data = forward_only;
  context.share_diffs = !forward_only;
  Net net(ParseNet(text, "net"), context, TestRegistry());
  net.Forward();
  net.Backward();
  const NetParameter model = net.ToProto();
  net.CopyTrainedLayersFrom(model);
  const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_LT(took, kMaxSeconds);
}

TEST(LargeNet, OfLayersInARowIsBuiltQuickly) {
  const std::string text =
      ManyLayers("layer {{ name: 'l{0}' type: 'Power' bottom: 'b{1}' top: 'b{0}' }}");
  ExpectSoon(text);
}

TEST(LargeNet, OfLayersInPlaceIsBuiltQuickly) {
  ExpectSoon(ManyLayers("layer {{ name: 'l{0}' type: 'ReLU' bottom: 'b0' top: 'b0' }}"));
}

TEST(LargeNet, OfReadersOfOneBlobIsBuiltQuickly) {
  ExpectSoon(ManyLayers("layer {{ name: 'l{0}' type: 'Power' bottom: 'b0' top: 'b{0}' }}"));
}

TEST(LargeNet, OfSharedParametersIsBuiltQuickly) {
  ExpectSoon(
      ManyLayers("layer {{ name: 'l{0}' type: 'InnerProduct' bottom: 'b{1}' top: 'b{0}' "
                 "param {{ name: 'w' }} param {{ name: 'own{0}' }} "
                 "inner_product_param {{ num_output: 2 }} }}"));
}

// Each blob is in use from the layer that writes it to the net's last layer.
TEST(LargeNet, OfLongLivedBlobsIsBuiltQuickly) {
  std::string text =
      ManyLayers("layer {{ name: 'l{0}' type: 'Power' bottom: 'b{1}' top: 'b{0}' }}");
  text += "layer { name: 'sum' type: 'Eltwise' top: 'sum' ";
  for (int i = 1; i < kLayers; ++i) text += fmt::format("bottom: 'b{}' ", i);
  ExpectSoon(text + "}", /*forward_only=*/true);
}

}  // namespace
}  // namespace hearth::caffe
