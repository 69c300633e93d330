#include <gtest/gtest.h>

#include <cctype>

#include "hearth/caffe/upgrade/testing/upgrade_testing.h"

namespace hearth::caffe {
namespace {

TEST(UpgradeV1, EveryTypeHasItsName) {
  V1LayerParameter layer;
  const EnumDescriptor* types = layer.descriptor().Find("type")->enumeration;
  for (const EnumValue& type : types->values) {
    if (type.number == V1LayerParameter::NONE) continue;
    // Old and new names differ only in case and underscores, such as SIGMOID_CROSS_ENTROPY_LOSS and
    // SigmoidCrossEntropyLoss.
    std::string letters, got;
    for (const char* c = type.name; *c; ++c) {
      if (*c != '_') letters += static_cast<char>(std::tolower(*c));
    }
    if (letters == "softmaxloss") letters = "softmaxwithloss";
    const NetParameter net = ParseNet(std::string("layers { type: ") + type.name + " }", "old");
    for (const char c : net.layer(0).type()) got += static_cast<char>(std::tolower(c));
    EXPECT_EQ(got, letters);
  }
}

TEST(UpgradeV1, DataFieldsOfEveryDataLayerMoveToTransformParam) {
  for (const char* param : {"data_param", "image_data_param", "window_data_param"}) {
    EXPECT_EQ(Upgraded(std::string("layers { name: 'd' ") + param +
                       " { source: 's' scale: 0.5 mean_file: 'm' crop_size: 3 mirror: true } }"),
              Plain(std::string("layer { name: 'd' transform_param { scale: 0.5 mirror: true "
                                "crop_size: 3 mean_file: 'm' } ") +
                    param + " { source: 's' } }"));
  }
}

TEST(UpgradeV1, ATransformOfOneDataLayerGivesAllOfThemOne) {
  EXPECT_EQ(
      Upgraded("layers { type: DATA data_param { source: 's' mirror: true } }"
               "layers { type: DATA } layers { type: IMAGE_DATA } layers { type: RELU }"),
      Plain("layer { type: 'Data' transform_param { mirror: true } data_param { source: 's' } }"
            "layer { type: 'Data' transform_param {} data_param {} }"
            "layer { type: 'ImageData' transform_param {} image_data_param {} }"
            "layer { type: 'ReLU' }"));
  EXPECT_EQ(Upgraded("layers { type: DATA }"), Plain("layer { type: 'Data' }"));
}

}  // namespace
}  // namespace hearth::caffe
