#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/upgrade/testing/upgrade_testing.h"

namespace hearth::caffe {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(UpgradeV0Padding, PaddingLayersBecomePadsOfTheirConsumers) {
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

TEST(UpgradeV0Padding, RejectsPaddingBeforeOtherLayers) {
  EXPECT_THAT(
      [] {
        ParseNet(
            "layers { layer { name: 'p' type: 'padding' pad: 2 } bottom: 'x' top: 'p' }"
            "layers { layer { name: 'r' type: 'relu' } bottom: 'p' top: 'r' }",
            "old");
      },
      ThrowsMessage<Error>(HasSubstr("the padding layer 'p' feeds 'r' of type relu")));
}

}  // namespace
}  // namespace hearth::caffe
