#include "hearth/caffe/net/net_params.h"

#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/net/net.h"
#include "hearth/caffe/net/testing/net_testing.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// A net of two InnerProduct layers that share their weights: a (4 outputs, 3 inputs) and b (the
// same, or 3 outputs and 4 inputs). `a` and `b` are added to their param text.
std::unique_ptr<Net> Shared(const std::string& a, const std::string& b, bool same_shape = true) {
  const std::string text = fmt::format(
      "layer {{ name: 'x' type: 'Input' top: 'x' input_param {{ shape {{ dim: 2 dim: 3 }} }} }}"
      "layer {{ name: 'a' type: 'InnerProduct' bottom: 'x' top: 'a' param {{ name: 'w' {} }}"
      " inner_product_param {{ num_output: 4 bias_term: false }} }}"
      "layer {{ name: 'b' type: 'InnerProduct' bottom: '{}' top: 'b' param {{ name: 'w' {} }}"
      " inner_product_param {{ num_output: {} bias_term: false }} }}",
      a, same_shape ? "x" : "a", b, same_shape ? 4 : 3);
  return std::make_unique<Net>(ParseNet(text, "net"), ContextOf(TRAIN));
}

TEST(NetParams, PutsEachParameterOnItsOwnCacheLines) {
  Net net(ParseNet(RowsNet(4, 4), "net"), ContextOf(TRAIN), TestRegistry());
  const ParamLayout& layout = net.params().layout();
  ASSERT_EQ(layout.slices.size(), 4u);
  EXPECT_EQ(layout.slices[0].count, 12);
  EXPECT_EQ(layout.slices[1].offset, 16);
  EXPECT_EQ(layout.size, 64);
  EXPECT_EQ(net.params().learnable()[1].lr_mult, 2.0f);
  EXPECT_EQ(net.params().learnable()[1].decay_mult, 0.0f);
}

TEST(NetParams, KeepsValuesWhenBoundToOtherMemory) {
  Net net(ParseNet(RowsNet(4, 4), "net"), ContextOf(TRAIN), TestRegistry());
  net.Fetch();
  const float loss = net.Forward();
  Tensor arena = Full({net.params().layout().size}, 7.0f);
  net.params().BindData(arena);
  EXPECT_EQ(net.Forward(), loss);
  arena.zero_();
  EXPECT_NE(net.Forward(), loss);
}

TEST(NetParams, CollectsAllGradientsInTheGivenBuffer) {
  Net net(ParseNet(RowsNet(4, 4), "net"), ContextOf(TRAIN), TestRegistry());
  Tensor arena = Tensor::Zeros({net.params().layout().size});
  net.params().BindDiff(arena);
  net.Fetch();
  net.Forward();
  net.Backward();
  for (const ParamLayout::Slice& slice : net.params().layout().slices) {
    EXPECT_GT(LargestMagnitude(arena.narrow(0, slice.offset, slice.count)), 0.0f);
  }
  net.ClearParamDiffs();
  net.params().diff();
  EXPECT_EQ(LargestMagnitude(arena), 0.0f);
}

TEST(NetParams, DropsClearedGradientsOfLayersThatDoNotLearn) {
  Net net(ParseNet(RowsNet(4, 4), "net"), ContextOf(TRAIN), TestRegistry());
  net.Fetch();
  net.Forward();
  net.Backward();
  ASSERT_GT(LargestMagnitude(net.layer("ip1").blobs()[1]->diff()), 0.0f);
  net.layer("ip1").set_param_propagate_down(1, false);
  net.ClearParamDiffs();
  net.Backward();
  EXPECT_EQ(LargestMagnitude(net.layer("ip1").blobs()[1]->diff()), 0.0f);
  EXPECT_GT(LargestMagnitude(net.layer("ip1").blobs()[0]->diff()), 0.0f);
}

// The first layer overwrites the cleared gradient, the second one adds to it.
TEST(NetParams, AddsTheGradientsOfLayersThatShareAParameter) {
  auto net = Shared("", "");
  net->params().diff().fill_(9);
  for (const char* layer : {"a", "b"}) {
    net->layer(layer).set_param_propagate_down(0, true);
  }
  net->blob("x").data().fill_(1);
  net->blob("a").diff().fill_(1);
  net->blob("b").diff().fill_(10);
  net->ClearParamDiffs();
  for (const NetLayer& layer : net->layers()) {
    layer.layer->Backward(layer.top, layer.bottom_need_backward, layer.bottom);
  }
  const Tensor& diff = net->layer("a").blobs()[0]->diff();
  EXPECT_TRUE(Equal(diff, Full({4, 3}, 22.f)));  // sum over two rows
}

TEST(NetParams, KeepsDiffsAtTheirFirstAddress) {
  auto net = Shared("", "");
  const Tensor early = net->layer("b").blobs()[0]->diff();
  net->layer("b").blobs()[0]->diff().fill_(2);
  EXPECT_EQ(TotalOf(net->params().diff()), 24.0f);
  net->blob("a").diff().fill_(1);
  net->Backward();
  EXPECT_EQ(net->params().diff().data_ptr(), early.data_ptr());
}

TEST(NetParams, KeepsDiffValuesWhicheverLayerWroteThem) {
  auto net = Shared("", "");
  net->layer("b").blobs()[0]->diff().fill_(2);
  Tensor arena = Tensor::Zeros({net->params().layout().size});
  net->params().BindDiff(arena);
  EXPECT_EQ(TotalOf(arena), 24.0f);
}

TEST(NetParams, SharesMemoryByName) {
  auto net = Shared("", "lr_mult: 3");
  EXPECT_EQ(net->params().learnable().size(), 1u);
  EXPECT_EQ(net->params().learnable()[0].lr_mult, 3.0f);
  EXPECT_EQ(net->layer("a").blobs()[0]->data_ptr(), net->layer("b").blobs()[0]->data_ptr());
  EXPECT_EQ(net->layer("a").blobs()[0]->diff_ptr(), net->layer("b").blobs()[0]->diff_ptr());
  net->Backward();
  EXPECT_EQ(net->layer("a").blobs()[0]->diff_ptr(), net->layer("b").blobs()[0]->diff_ptr());
}

TEST(NetParams, RejectsIncompatibleSharing) {
  EXPECT_THAT([] { Shared("lr_mult: 1", "lr_mult: 2"); },
              ThrowsMessage<Error>(
                  HasSubstr("shared parameter 'w' has lr_mult 2 here and 1 in another layer")));
  EXPECT_THAT(
      [] { Shared("", "", false); },
      ThrowsMessage<Error>(HasSubstr("layer 'b' (InnerProduct), parameters: parameter 'w' of "
                                     "shape 3 4 (12) cannot be shared with layer 'a'")));
  EXPECT_NO_THROW(Shared("", "share_mode: PERMISSIVE", false));
}

}  // namespace
}  // namespace hearth::caffe
