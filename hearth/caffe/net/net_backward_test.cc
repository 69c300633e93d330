#include "hearth/caffe/net/net_backward.h"

#include <gmock/gmock.h>

#include "hearth/caffe/net/testing/net_testing.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;

// Returns for each layer of a net whether it runs Backward. The layers are the input, two
// InnerProducts and a loss. `first` and `second` are added to the text of the InnerProducts.
std::vector<bool> NeedBackward(const std::string& first, const std::string& second,
                               const std::string& net = "") {
  const NetParameter param = ParseNet(
      net +
          "layer { name: 'in' type: 'Input' top: 'x' top: 't' input_param { shape { dim: 2 dim: 3 "
          "} "
          "shape { dim: 2 dim: 1 } } }"
          "layer { name: 'a' type: 'InnerProduct' bottom: 'x' top: 'h' inner_product_param { "
          "num_output: 4 } " +
          first +
          " } layer { name: 'b' type: 'InnerProduct' bottom: 'h' top: 'y' inner_product_param { "
          "num_output: 1 } " +
          second +
          " } layer { name: 'loss' type: 'EuclideanLoss' bottom: 'y' bottom: 't' top: 'l' }",
      "net");
  const NetGraph graph = BuildNetGraph(param, ContextOf(TRAIN), TestRegistry());
  std::vector<bool> needs;
  for (const NetLayer& layer : graph.layers) needs.push_back(layer.need_backward);
  return needs;
}

constexpr char kFrozen[] = "param { lr_mult: 0 } param { lr_mult: 0 }";

TEST(PlanBackwardTest, RunsFromTheLossToTheFirstLearnedLayer) {
  EXPECT_THAT(NeedBackward("", ""), ElementsAre(false, true, true, true));
  EXPECT_THAT(NeedBackward(kFrozen, ""), ElementsAre(false, false, true, true));
  EXPECT_THAT(NeedBackward("", kFrozen), ElementsAre(false, true, true, true))
      << "the gradient passes through the frozen layer";
  EXPECT_THAT(NeedBackward(kFrozen, kFrozen), ElementsAre(false, false, false, false));
}

TEST(PlanBackwardTest, StopsWherePropagateDownIsFalse) {
  EXPECT_THAT(NeedBackward("", "propagate_down: false"), ElementsAre(false, false, true, true));
}

TEST(PlanBackwardTest, ForceBackwardRunsEveryLayer) {
  EXPECT_THAT(NeedBackward(kFrozen, kFrozen, "force_backward: true "),
              ElementsAre(true, true, true, true));
}

}  // namespace
}  // namespace hearth::caffe
