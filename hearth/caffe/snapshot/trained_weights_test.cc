#include "hearth/caffe/snapshot/trained_weights.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "hearth/base/testing/error_testing.h"
#include "hearth/base/testing/test_folder_testing.h"
#include "hearth/caffe/net/layer_error.h"
#include "hearth/caffe/net/testing/net_testing.h"
#include "hearth/caffe/snapshot/snapshot.h"

namespace hearth::caffe {
namespace {

using testing::HasSubstr;

class TrainedWeightsTest : public testing::Test {
 protected:
  ~TrainedWeightsTest() override { std::filesystem::remove(path_); }

  // Writes a model file with the weights of a net with these layers.
  void Write(const std::string& layers) const {
    const Net net(ParseNet(input_ + layers, "net"), ContextOf(TRAIN, 3));
    WriteModel(net.ToProto(), path_);
  }
  static std::string Product(const std::string& name, int outputs) {
    return fmt::format(
        "layer {{ name: '{}' type: 'InnerProduct' bottom: 'x' top: '{}' inner_product_param {{ "
        "num_output: {} weight_filler {{ type: 'xavier' }} }} }}",
        name, name, outputs);
  }
  static float FirstWeight(Net& net, const std::string& layer) {
    return net.layer(layer).blobs()[0]->data_ptr()[0];
  }

  const std::string input_ =
      "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 3 } } }";
  const std::string path_ = TestFolder() + "trained_weights_test.caffemodel";
  Net net_{ParseNet(input_ + Product("a", 2) + Product("b", 2), "net"), ContextOf(TEST, 1)};
};

TEST_F(TrainedWeightsTest, AreCopiedByTheNamesOfLayers) {
  Write(Product("b", 2) + Product("c", 5));
  const float a = FirstWeight(net_, "a"), b = FirstWeight(net_, "b");
  LoadTrainedWeights(path_, &net_);
  EXPECT_EQ(FirstWeight(net_, "a"), a) << "the model does not have it";
  EXPECT_NE(FirstWeight(net_, "b"), b);
  const NetParameter model = ReadModel(path_);
  for (const LayerParameter& layer : model.layer()) {
    if (layer.name() != "b") continue;
    EXPECT_EQ(FirstWeight(net_, "b"), layer.blobs()[0].data()[0]);
  }
}

TEST_F(TrainedWeightsTest, AMismatchNamesFileAndLayer) {
  Write(Product("b", 4));
  try {
    LoadTrainedWeights(path_, &net_);
    FAIL();
  } catch (const LayerError& error) {
    EXPECT_EQ(error.layer(), "b");
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("weights " + path_));
  }
}

TEST_F(TrainedWeightsTest, AMissingOrDamagedFileIsNamed) {
  const Error missing = Thrown([&] { LoadTrainedWeights(path_, &net_); });
  EXPECT_EQ(missing.code(), ErrorCode::kNotFound);
  EXPECT_THAT(missing.message(), HasSubstr(path_));
  std::ofstream(path_) << "not a model";
  const Error damaged = Thrown([&] { LoadTrainedWeights(path_, &net_); });
  EXPECT_EQ(damaged.code(), ErrorCode::kDataLoss);
  EXPECT_THAT(damaged.message(), HasSubstr(path_));
}

}  // namespace
}  // namespace hearth::caffe
