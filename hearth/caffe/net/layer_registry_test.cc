#include "hearth/caffe/net/layer_registry.h"

#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/net/testing/net_testing.h"

namespace hearth::caffe {
namespace {

TEST(LayerRegistry, CreatesLayersByType) {
  LayerParameter param;
  param.set_type("TestRows");
  EXPECT_EQ(TestRegistry().Create(param, ContextOf(TRAIN))->type(), "TestRows");
}

TEST(LayerRegistry, SuggestsTheNearestType) {
  LayerParameter param;
  param.set_name("a");
  param.set_type("Inner_Product");
  EXPECT_THAT([&] { TestRegistry().Create(param, ContextOf(TRAIN)); },
              testing::ThrowsMessage<Error>(testing::HasSubstr(
                  "layer 'a': unknown layer type 'Inner_Product'; did you mean InnerProduct?")));
}

TEST(LayerRegistry, RejectsADuplicateType) {
  LayerRegistry registry;
  registry.Add<TestRowsLayer>("TestRows");
  EXPECT_THROW(registry.Add<TestRowsLayer>("TestRows"), Error);
}

}  // namespace
}  // namespace hearth::caffe
