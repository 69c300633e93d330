#include "hearth/trainer/job/run_events.h"

#include <gtest/gtest.h>

#include "hearth/caffe/tensor/testing/tensor_testing.h"
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

TEST(RunEventsTest, AHistogramCountsFiniteValuesInBinsOfEqualWidth) {
  const caffe::Tensor values =
      caffe::Tensor::Copy({0.0f, 1.0f, 29.0f, 30.0f, NAN, INFINITY, 15.0f});
  const auto event = HistogramEvent("x", values, 2);
  EXPECT_EQ(event["least"], 0);
  EXPECT_EQ(event["most"], 60);
  EXPECT_EQ(event["sum"], 150);
  EXPECT_EQ(event["sum_squares"], 4 * (1 + 841 + 900 + 225));
  std::vector<int64_t> expected(30);
  for (const size_t part : {0, 1, 15}) expected[part] = 1;
  expected[29] = 2;  // the largest value is in the last bin
  EXPECT_EQ(event["counts"].get<std::vector<int64_t>>(), expected);
  EXPECT_EQ(HistogramEvent("x", caffe::Full({3}, 7.0f), 1)["counts"], nlohmann::json({3}));
  EXPECT_TRUE(HistogramEvent("x", caffe::Full({3}, NAN), 1).is_null());
}

TEST(RunEventsTest, OutputsHaveTheirNames) {
  caffe::Net net = TwoOutputs();
  net.Forward();
  EXPECT_EQ(OutputsOf(net), json({{"loss", {6.0}}, {"sum", {3.0, 3.0, 3.0, 3.0}}}));
}

TEST(RunEventsTest, ALayersInputIsTheLayerThatLastWroteTheBlob) {
  const json layers = NetEvent(TwoOutputs())["layers"];
  json inputs;
  for (const json& layer : layers) inputs[layer["name"].get<std::string>()] = layer["inputs"];
  EXPECT_EQ(inputs["x"], json::array());
  EXPECT_EQ(inputs["act"], json::array({"x"}));
  // Blob t goes directly to the loss, x through the in-place layer.
  EXPECT_EQ(inputs["loss"], json::array({"act", "x"}));
}

TEST(RunEventsTest, MeansOfATestAreAssignedToTheOutputs) {
  caffe::Net net = TwoOutputs();
  const json event = TestEvent(1, 20, net, {0.5, 1, 2, 3, 4});
  EXPECT_EQ(event["net"], 1);
  EXPECT_EQ(event["iteration"], 20);
  EXPECT_EQ(event["outputs"], json({{"loss", {0.5}}, {"sum", {1, 2, 3, 4}}}));
}

}  // namespace
}  // namespace hearth::trainer
