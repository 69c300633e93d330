#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/caffe/proto/text_reader.h"
#include "hearth/caffe/proto/text_writer.h"
#include "hearth/caffe/upgrade/net_file.h"

namespace hearth::caffe {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

// The text of the net as read, after the upgrade.
std::string Upgraded(const std::string& text) { return WriteText(ParseNet(text, "old")); }
std::string Plain(const std::string& text) {
  NetParameter net;
  ParseText(text, "new", &net);
  return WriteText(net);
}

TEST(UpgradeV1, EveryTypeHasItsName) {
  V1LayerParameter layer;
  const EnumDescriptor* types = layer.descriptor().Find("type")->enumeration;
  for (const EnumValue& type : types->values) {
    if (type.number == V1LayerParameter::NONE) continue;
    // SIGMOID_CROSS_ENTROPY_LOSS is SigmoidCrossEntropyLoss: the same letters.
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

TEST(UpgradeV1, RejectsBothFormatsInOneNet) {
  EXPECT_THAT([] { ParseNet("layer { name: 'a' } layers { name: 'b' }", "mixed"); },
              ThrowsMessage<Error>(HasSubstr("mixed: it has 1 `layer` and 1 `layers`")));
}

TEST(UpgradeV0, PaddingLayersBecomePadsOfTheirConsumers) {
  EXPECT_EQ(
      Upgraded("layers { layer { name: 'p' type: 'padding' pad: 2 } bottom: 'x' top: 'p' }"
               "layers { layer { name: 'c' type: 'conv' kernelsize: 3 } bottom: 'p' top: 'c' }"
               "layers { layer { name: 'q' type: 'padding' pad: 1 } bottom: 'c' top: 'q' }"
               "layers { layer { name: 'm' type: 'pool' pool: AVE } bottom: 'q' top: 'm' }"),
      Plain("layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' "
            "  convolution_param { pad: 2 kernel_size: 3 } }"
            "layer { name: 'm' type: 'Pooling' bottom: 'c' top: 'm' "
            "  pooling_param { pad: 1 pool: AVE } }"));
}

TEST(UpgradeV0, RejectsPaddingBeforeOtherLayers) {
  EXPECT_THAT(
      [] {
        ParseNet(
            "layers { layer { name: 'p' type: 'padding' pad: 2 } bottom: 'x' top: 'p' }"
            "layers { layer { name: 'r' type: 'relu' } bottom: 'p' top: 'r' }",
            "old");
      },
      ThrowsMessage<Error>(HasSubstr("the padding layer 'p' feeds 'r' of type relu")));
}

TEST(UpgradeV0, DataLayersKeepTheirFields) {
  EXPECT_EQ(
      Upgraded("layers { layer { name: 'i' type: 'images' source: 's' batchsize: 4 cropsize: 5 "
               "  scale: 0.5 meanfile: 'm' mirror: true shuffle_images: true new_height: 8 "
               "  new_width: 9 rand_skip: 2 } top: 'x' }"
               "layers { layer { name: 'w' type: 'window_data' det_fg_threshold: 0.4 "
               "  det_crop_mode: 'square' det_context_pad: 16 } top: 'y' }"
               "layers { layer { name: 'h' type: 'hdf5_output' "
               "  hdf5_output_param { file_name: 'f' } } bottom: 'x' }"
               "layers { layer { name: 'c' type: 'concat' concat_dim: 0 } bottom: 'x' top: 'z' }"),
      Plain(
          "layer { name: 'i' type: 'ImageData' top: 'x' transform_param { scale: 0.5 "
          "    mirror: true crop_size: 5 mean_file: 'm' } image_data_param { source: 's' "
          "    batch_size: 4 rand_skip: 2 shuffle: true new_height: 8 new_width: 9 } }"
          "layer { name: 'w' type: 'WindowData' top: 'y' window_data_param { fg_threshold: 0.4 "
          "    context_pad: 16 crop_mode: 'square' } }"
          "layer { name: 'h' type: 'HDF5Output' bottom: 'x' hdf5_output_param { file_name: 'f' } }"
          "layer { name: 'c' type: 'Concat' bottom: 'x' top: 'z' concat_param { concat_dim: 0 } "
          "}"));
}

TEST(UpgradeV0, KeepsWeights) {
  const NetParameter net = ParseNet(
      "layers { layer { name: 'ip' type: 'innerproduct' num_output: 2 "
      "  blobs { num: 1 channels: 1 height: 2 width: 1 data: 3 data: 4 } blobs_lr: 0.5 } }",
      "old");
  EXPECT_THAT(net.layer(0).blobs(0).data(), testing::ElementsAre(3, 4));
  EXPECT_EQ(net.layer(0).param(0).lr_mult(), 0.5F);
}

TEST(UpgradeV0, WarnsOfFieldsThatALayerIgnores) {
  std::string said;
  log::SetSink([&](const log::Record& record) { said += record.text; });
  ParseNet("layers { layer { name: 'r' type: 'relu' num_output: 3 } }", "old.prototxt");
  log::SetSink({});
  EXPECT_THAT(said, AllOf(HasSubstr("old.prototxt: layer 'r'"), HasSubstr("num_output")));
}

TEST(UpgradeV0, SuggestsTheNearestNameOfAnUnknownType) {
  EXPECT_THAT([] { ParseNet("layers { layer { name: 'r' type: 'rleu' } }", "old"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("V0 layer type 'rleu'"), HasSubstr("relu"))));
}

TEST(UpgradeInputs, PrefersShapesToDimensionsAndDropsNamesWithoutEither) {
  EXPECT_EQ(Upgraded("input: 'a' input: 'b' input_shape { dim: 5 } input_shape { dim: 6 dim: 7 }"),
            Plain("layer { name: 'input' type: 'Input' top: 'a' top: 'b' "
                  "input_param { shape { dim: 5 } shape { dim: 6 dim: 7 } } }"));
  EXPECT_EQ(Upgraded("input: 'a'"), "");
}

TEST(UpgradeNet, ReturnsWhetherItChangedTheNet) {
  const auto upgrade = [](const char* text) {
    NetParameter net;
    ParseText(text, "net", &net);
    return UpgradeNet(&net, "net");
  };
  EXPECT_TRUE(upgrade("layers { name: 'a' type: RELU }"));
  EXPECT_TRUE(upgrade("input: 'a' input_shape { dim: 1 }"));
  EXPECT_TRUE(upgrade("layer { type: 'BatchNorm' param { } param { } param { } }"));
  EXPECT_FALSE(upgrade("layer { name: 'a' type: 'ReLU' }"));
}

}  // namespace
}  // namespace hearth::caffe
