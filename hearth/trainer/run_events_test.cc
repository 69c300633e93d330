#include "hearth/trainer/run_events.h"

#include <gtest/gtest.h>

#include "hearth/caffe/upgrade/net_file.h"

namespace hearth::trainer {
namespace {

using nlohmann::json;

caffe::Net TwoOutputs() {
  const char* text = R"(name: "two"
    layer { name: "x" type: "DummyData" top: "x" top: "t"
      dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 dim: 3 }
        data_filler { type: "constant" value: 1 } data_filler { type: "constant" value: 3 } } }
    layer { name: "act" type: "ReLU" bottom: "x" top: "x" }
    layer { name: "loss" type: "EuclideanLoss" bottom: "x" bottom: "t" top: "loss" }
    layer { name: "sum" type: "Reduction" bottom: "x" top: "sum" reduction_param { axis: 1 } })";
  return caffe::Net(caffe::ParseNet(text, "net"), {});
}

TEST(RunEventsTest, OutputsHaveTheirNames) {
  caffe::Net net = TwoOutputs();
  net.Forward();
  EXPECT_EQ(OutputsOf(net), json({{"loss", {6.0}}, {"sum", {3.0, 3.0, 3.0, 3.0}}}));
}

TEST(RunEventsTest, ALayerTakesFromTheOneThatWroteTheBlobLast) {
  const json layers = NetEvent(TwoOutputs())["layers"];
  json inputs;
  for (const json& layer : layers) inputs[layer["name"].get<std::string>()] = layer["inputs"];
  EXPECT_EQ(inputs["x"], json::array());
  EXPECT_EQ(inputs["act"], json::array({"x"}));
  // The blob t goes straight to the loss, x through the layer that works in place.
  EXPECT_EQ(inputs["loss"], json::array({"act", "x"}));
}

TEST(RunEventsTest, MeansOfATestAreDealtToTheOutputs) {
  caffe::Net net = TwoOutputs();
  const json event = TestEvent(1, 20, net, {0.5, 1, 2, 3, 4});
  EXPECT_EQ(event["net"], 1);
  EXPECT_EQ(event["iteration"], 20);
  EXPECT_EQ(event["outputs"], json({{"loss", {0.5}}, {"sum", {1, 2, 3, 4}}}));
}

}  // namespace
}  // namespace hearth::trainer
