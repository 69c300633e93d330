#include "hearth/caffe/net/layer_step.h"

#include <gmock/gmock.h>

#include <new>
#include <stdexcept>
#include <thread>

#include "hearth/caffe/net/layer_error.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/tensor_error.h"

namespace hearth::caffe {
namespace {

using testing::HasSubstr;

class LayerStepTest : public testing::Test {
 protected:
  LayerStepTest() {
    LayerParameter param;
    param.set_name("r1");
    param.set_type("ReLU");
    layer_ = LayerRegistry::Default().Create(param, {});
    bottom_.Reshape({2, 3});
  }

  // The LayerError of a step that throws `thrown`.
  template <typename Thrown>
  LayerError ErrorOf(const Thrown& thrown) {
    try {
      InLayer(*layer_, "forward", {&bottom_}, [&] { throw thrown; });
    } catch (const LayerError& error) {
      return error;
    }
    throw std::logic_error("no LayerError");
  }

  std::unique_ptr<Layer> layer_;
  Blob bottom_;
};

TEST_F(LayerStepTest, AnErrorKeepsItsCodeAndGetsTheLayersName) {
  const LayerError error = ErrorOf(Error(ErrorCode::kDataLoss, "the image is damaged"));
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  EXPECT_EQ(error.message(), "layer 'r1' (ReLU), forward: the image is damaged");
  EXPECT_EQ(error.layer(), "r1");
  ASSERT_NE(error.cause(), nullptr);
  EXPECT_EQ(error.cause()->message(), "the image is damaged");
}

TEST_F(LayerStepTest, ATensorErrorHasTheShapesOfTheBottoms) {
  EXPECT_EQ(ErrorOf(TensorError(false, "sizes differ")).code(), ErrorCode::kInternal);
  const LayerError error = ErrorOf(TensorError(true, "out of memory"));
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(error.message(), HasSubstr("(bottom shapes 2 3 (6))"));
}

TEST_F(LayerStepTest, OtherExceptionsHaveCodesToo) {
  EXPECT_EQ(ErrorOf(std::bad_alloc()).code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(ErrorOf(std::out_of_range("at")).code(), ErrorCode::kInternal);
}

// For crash reports, a helper thread without a step reports the step of the thread that it works
// for.
TEST_F(LayerStepTest, AThreadWithoutAStepReportsAnothersStep) {
  InLayer(*layer_, "backward", {}, [&] {
    EXPECT_STREQ(CurrentLayerStep().doing, "backward");
    InLayer(*layer_, "reshaping", {}, [&] { EXPECT_STREQ(CurrentLayerStep().doing, "reshaping"); });
    LayerStep seen;
    std::thread([&] { seen = CurrentLayerStep(); }).join();
    EXPECT_EQ(seen.layer, layer_.get());
    EXPECT_STREQ(seen.doing, "backward");
  });
  EXPECT_EQ(CurrentLayerStep().layer, nullptr);
}

}  // namespace
}  // namespace hearth::caffe
