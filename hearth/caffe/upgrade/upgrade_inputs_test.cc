#include <gtest/gtest.h>

#include "hearth/caffe/upgrade/testing/upgrade_testing.h"

namespace hearth::caffe {
namespace {

TEST(UpgradeInputs, PrefersShapesToDimensionsAndDropsNamesWithoutEither) {
  EXPECT_EQ(Upgraded("input: 'a' input: 'b' input_shape { dim: 5 } input_shape { dim: 6 dim: 7 }"),
            Plain("layer { name: 'input' type: 'Input' top: 'a' top: 'b' "
                  "input_param { shape { dim: 5 } shape { dim: 6 dim: 7 } } }"));
  EXPECT_EQ(Upgraded("input: 'a'"), "");
}

}  // namespace
}  // namespace hearth::caffe
