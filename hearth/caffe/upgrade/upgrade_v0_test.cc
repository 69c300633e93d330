#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/caffe/upgrade/testing/upgrade_testing.h"

namespace hearth::caffe {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

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
  std::string logged;
  log::SetSink([&](const log::Record& record) { logged += record.text; });
  ParseNet("layers { layer { name: 'r' type: 'relu' num_output: 3 } }", "old.prototxt");
  log::SetSink({});
  EXPECT_THAT(logged, AllOf(HasSubstr("old.prototxt: layer 'r'"), HasSubstr("num_output")));
}

TEST(UpgradeV0, SuggestsTheNearestNameOfAnUnknownType) {
  EXPECT_THAT([] { ParseNet("layers { layer { name: 'r' type: 'rleu' } }", "old"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("V0 layer type 'rleu'"), HasSubstr("relu"))));
}

}  // namespace
}  // namespace hearth::caffe
