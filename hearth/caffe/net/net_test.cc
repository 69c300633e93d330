#include "hearth/caffe/net/net.h"

#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/net/testing/net_testing.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::ThrowsMessage;

std::unique_ptr<Net> NetOf(const std::string& text, Phase phase = TRAIN) {
  return std::make_unique<Net>(ParseNet(text, "net"), ContextOf(phase), TestRegistry());
}

Tensor Gradient(Net& net) { return net.params().diff().clone(); }

TEST(Net, FetchesRowsUntilTheEpochIsOver) {
  auto net = NetOf(RowsNet(4, 10));
  EXPECT_EQ(net->batch_size(), 4);
  EXPECT_EQ(net->Fetch(), 4);
  EXPECT_EQ(net->Fetch(), 4);
  EXPECT_EQ(net->Fetch(), 2);
  net->Forward();
  EXPECT_EQ(net->blob("y").shape(), (Shape{2, 1}));
  EXPECT_EQ(net->Fetch(), 0);
  net->NextEpoch();
  EXPECT_EQ(net->Fetch(), 4);
}

TEST(Net, WithoutFedLayersFetchesNothing) {
  auto net =
      NetOf(R"(layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 } } })");
  EXPECT_EQ(net->Fetch(), std::nullopt);
  EXPECT_THAT(net->input_names(), ElementsAre("x"));
  EXPECT_THAT(net->output_names(), ElementsAre("x"));
}

TEST(Net, ScalesGradientsButNotTheLoss) {
  auto net = NetOf(RowsNet(4, 4));
  net->Fetch();
  const float loss = net->Forward();
  net->Backward();
  const Tensor whole = Gradient(*net);
  net->ClearParamDiffs();
  net->SetLossScale(0.25f);
  EXPECT_EQ(net->Forward(), loss);
  net->Backward();
  EXPECT_TRUE(AllClose(Gradient(*net), Scaled(whole, 0.25), 1e-6, 1e-8));
}

TEST(Net, NotifiesOfEachLayersBeginningAndEnd) {
  auto net = NetOf(RowsNet(4, 4));
  net->Fetch();
  std::vector<std::pair<Net::LayerEvent, int>> events;
  int calls = 0;
  net->AddLayerCallback([&](Net::LayerEvent, int) { ++calls; });
  net->AddLayerCallback(
      [&](Net::LayerEvent event, int layer) { events.emplace_back(event, layer); });
  net->Forward(1, 2);
  net->Backward(2, 1);
  using enum Net::LayerEvent;
  EXPECT_THAT(events,
              ElementsAre(Pair(kBeforeForward, 1), Pair(kAfterForward, 1), Pair(kBeforeForward, 2),
                          Pair(kAfterForward, 2), Pair(kBeforeBackward, 2), Pair(kAfterBackward, 2),
                          Pair(kBeforeBackward, 1), Pair(kAfterBackward, 1)));
  EXPECT_EQ(calls, 8);  // both callbacks are called
}

TEST(Net, AddsGradientsUntilTheyAreCleared) {
  auto net = NetOf(RowsNet(4, 4));
  net->Fetch();
  net->Forward();
  net->Backward();
  const Tensor once = Gradient(*net);
  net->Forward();
  net->Backward();
  EXPECT_TRUE(AllClose(Gradient(*net), Scaled(once, 2), 1e-6, 1e-8));
}

TEST(Net, NotifiesWhenEachGradientIsFinal) {
  // In this net, a and b share a parameter, b's bias does not learn, and c does not affect the
  // loss.
  auto net = NetOf(RowsNet(4, 4, 0, R"(
    layer { name: "a" type: "InnerProduct" bottom: "h" top: "a" param { name: "w" }
            inner_product_param { num_output: 4 bias_term: false } }
    layer { name: "b" type: "InnerProduct" bottom: "a" top: "b" param { name: "w" } param { lr_mult: 0 }
            inner_product_param { num_output: 4 } }
    layer { name: "c" type: "InnerProduct" bottom: "b" top: "c"
            inner_product_param { num_output: 4 bias_term: false } }
    layer { name: "e" type: "EuclideanLoss" bottom: "b" bottom: "h" top: "e" })"));
  std::vector<std::string> owners;
  for (const NetParam& param : net->params().all()) {
    if (param.owner < 0) owners.push_back(net->layers()[param.layer].layer->name());
  }
  std::vector<std::string> order;
  net->set_on_gradient_ready([&](size_t index) { order.push_back(owners[index]); });
  net->Fetch();
  net->Forward();
  net->Backward();
  EXPECT_THAT(order, ElementsAre("c", "b", "ip2", "ip2", "a", "ip1", "ip1"));
}

std::string GivenWeights(const std::string& blobs) {
  return fmt::format(
      "layer {{ name: 'x' type: 'Input' top: 'x' input_param {{ shape {{ dim: "
      "1 dim: 2 }} }} }}"
      "layer {{ name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y' {}"
      " inner_product_param {{ num_output: 1 weight_filler {{ value: 9 }} }} "
      "}}",
      blobs);
}

TEST(Net, ReadsParametersFromItsText) {
  auto net =
      NetOf(GivenWeights("blobs { shape { dim: 1 dim: 2 } data: 3 data: 4 }"
                         "blobs { shape { dim: 1 } data: 5 }"));
  net->blob("x").data().fill_(1);
  net->Forward();
  EXPECT_EQ(*net->blob("y").data_ptr(), 12);
  // The weights are not stored a second time.
  EXPECT_TRUE(net->layer("ip").param().blobs().empty());
  EXPECT_THAT([] { NetOf(GivenWeights("blobs { shape { dim: 1 } data: 5 }")); },
              ThrowsMessage<Error>(HasSubstr("blobs is given 1 time(s), but the layer has 2")));
  const std::string wrong = "blobs { shape { dim: 1 } data: 5 }";
  EXPECT_THAT([&] { NetOf(GivenWeights(wrong + wrong)); },
              ThrowsMessage<Error>(HasSubstr("parameter 0 has shape 1 2 (2)")));
}

TEST(Net, ALayerMayHaveItsOwnPhase) {
  const auto zeros = [](const std::string& phase, Phase of_net) {
    auto net = NetOf(fmt::format("layer {{ name: 'x' type: 'Input' top: 'x' "
                                 "input_param {{ shape {{ dim: 99 }} "
                                 "}} }} layer {{ name: 'd' type: 'Dropout' "
                                 "bottom: 'x' top: 'y' {} }}",
                                 phase),
                     of_net);
    net->blob("x").data().fill_(1);
    net->Forward();
    const std::vector<float> values = ListOf(net->blob("y").data());
    return std::count(values.begin(), values.end(), 0.f);
  };
  EXPECT_EQ(zeros("phase: TEST", TRAIN), 0);
  EXPECT_GT(zeros("phase: TRAIN", TEST), 0);
  EXPECT_GT(zeros("", TRAIN), 0);
}

TEST(Net, NamesTheLayerThatFails) {
  EXPECT_THAT([] { NetOf(RowsNet(4, 4, 0, "layer { name: 'bad' type: 'Slice' bottom: 'h' }")); },
              ThrowsMessage<Error>(HasSubstr("layer 'bad' (Slice), setting up: the layer takes")));
  EXPECT_THAT([] { NetOf(RowsNet(4, 4, 0, "layer { name: 'bad' type: 'Slyce' bottom: 'h' }")); },
              ThrowsMessage<Error>(HasSubstr("unknown layer type 'Slyce'; did you mean Slice")));
}

TEST(Net, RejectsWrongConnections) {
  const auto fails = [](const std::string& layer, const std::string& message) {
    EXPECT_THAT([&] { NetOf(RowsNet(4, 4, 0, layer)); }, ThrowsMessage<Error>(HasSubstr(message)));
  };
  fails("layer { name: 'a' type: 'ReLU' bottom: 'hh' top: 'a' }", "did you mean h");
  fails("layer { name: 'a' type: 'ReLU' bottom: 'h' top: 'x' }",
        "already the top of an earlier layer");
  fails("layer { name: 'a' type: 'Flatten' bottom: 'h' top: 'h' }", "cannot run in place");
  fails("layer { name: 'a' type: 'ReLU' bottom: 'h' top: 'a' param { } }", "has 0 parameter(s)");
  fails(
      "layer { name: 'a' type: 'ReLU' bottom: 'h' top: 'a' propagate_down: "
      "true propagate_down: "
      "true }",
      "propagate_down is given 2 time(s) for 1 bottom(s)");
  fails(
      "layer { name: 'a' type: 'ReLU' bottom: 'h' top: 'a' loss_weight: 1 "
      "loss_weight: 1 }",
      "loss_weight is given 2 time(s) for 1 top(s)");
}

TEST(Net, FindsLayersAndBlobsByName) {
  auto net = NetOf(RowsNet(4, 4));
  EXPECT_EQ(net->layer("ip2").type(), "InnerProduct");
  EXPECT_EQ(net->loss_weight("loss"), 1.0f);
  EXPECT_EQ(net->loss_weight("h"), 0.0f);
  EXPECT_THAT([&] { net->layer("ip3"); },
              ThrowsMessage<Error>(HasSubstr("did you mean ip1 or ip2")));
  EXPECT_THAT([&] { net->blob("lost"); }, ThrowsMessage<Error>(HasSubstr("did you mean loss")));
  EXPECT_THROW(net->Forward(3, 99), Error);
}

TEST(Net, RunsRangesOfLayers) {
  auto net = NetOf(RowsNet(4, 4));
  net->Fetch();
  const float loss = net->Forward();
  EXPECT_EQ(net->Forward(0, 2), 0.0f);
  EXPECT_EQ(net->Forward(3, net->last_layer()), loss);
}

TEST(Net, ATestNetAllocatesNoDiffs) {
  auto net = NetOf(
      "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { "
      "dim: 2 dim: 3 } } }"
      "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y'"
      " inner_product_param { num_output: 4 } }",
      TEST);
  net->Forward();
  EXPECT_FALSE(net->blob("y").has_diff());
  EXPECT_FALSE(net->layer("ip").blobs()[0]->has_diff());
}

TEST(Net, RejectsInt8InTraining) {
  const auto build = [](Phase phase) {
    NetContext context = ContextOf(phase);
    context.precision = Precision::kInt8;
    Net(ParseNet(R"(name: "digits" )" + RowsNet(4, 10), "net"), context, TestRegistry());
  };
  build(TEST);
  EXPECT_THAT(
      [&] { build(TRAIN); },
      ThrowsMessage<Error>(HasSubstr("net 'digits' is to be trained: use float32 or bf16")));
}

}  // namespace
}  // namespace hearth::caffe
