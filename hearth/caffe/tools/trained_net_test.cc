#include "hearth/caffe/tools/trained_net.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "hearth/base/testing/error_testing.h"
#include "hearth/base/testing/test_folder_testing.h"
#include "hearth/caffe/tools/testing/trained_net_testing.h"

namespace hearth::caffe {
namespace {

using testing::HasSubstr;

class TrainedTestNetTest : public testing::Test {
 protected:
  TrainedTestNetTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    std::ofstream(prototxt_) << R"(
      layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 2 } } }
      layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
              inner_product_param { num_output: 2 bias_term: false } }
      layer { name: "drop" type: "Dropout" bottom: "y" top: "y" }
      layer { name: "train" type: "Silence" bottom: "y" include { phase: TRAIN } })";
    WriteInnerProduct(2, {1, 10, 100, 1000}, model_);
  }
  ~TrainedTestNetTest() override { std::filesystem::remove_all(folder_); }

  const std::string folder_ = TestFolder() + "trained_net_test";
  const std::string prototxt_ = folder_ + "/net.prototxt", model_ = folder_ + "/a.caffemodel";
};

TEST_F(TrainedTestNetTest, ComputesWithTheModelsWeightsInTheTestPhase) {
  NetContext context;
  context.phase = TRAIN;  // has no effect
  const auto net = TrainedTestNet(prototxt_, model_, context);
  EXPECT_EQ(net->phase(), TEST);
  net->blob("x").data_ptr()[0] = 2;
  net->blob("x").data_ptr()[1] = 3;
  net->Forward();
  EXPECT_EQ(net->blob("y").data_ptr()[0], 32) << "Dropout has no effect";
  EXPECT_EQ(net->blob("y").data_ptr()[1], 3200);
}

TEST_F(TrainedTestNetTest, AMissingFileIsNamed) {
  for (const auto& [net, model] :
       {std::pair{folder_ + "/missing", model_}, {prototxt_, folder_ + "/missing"}}) {
    const Error error = Thrown([&net = net, &model = model] { TrainedTestNet(net, model, {}); });
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_THAT(error.message(), HasSubstr(folder_ + "/missing"));
  }
}

}  // namespace
}  // namespace hearth::caffe
