#include "hearth/caffe/layers/python_layer.h"

#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/testing/layer_testing.h"
#include "hearth/caffe/proto/text_reader.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

LayerParameter PythonParam() {
  LayerParameter param;
  ParseText("name: 'mine' type: 'Python' python_param { module: 'm' layer: 'L' }", "case", &param);
  return param;
}

// Replaces a layer that an interpreter would create; tests/python tests real ones.
class TwiceLayer : public Layer {
 public:
  using Layer::Layer;
  void Reshape(const Blobs& bottom, const Blobs& top) override { top[0]->ReshapeLike(*bottom[0]); }
  void Forward(const Blobs& bottom, const Blobs& top) override {
    top[0]->data().copy_(Scaled(bottom[0]->data(), 2));
  }
  void Backward(const Blobs& top, const std::vector<bool>&, const Blobs& bottom) override {
    bottom[0]->diff().copy_(Scaled(top[0]->diff(), 2));
  }
};

std::unique_ptr<Layer> MakeTwice(const LayerParameter& param, const NetContext& context) {
  return std::make_unique<TwiceLayer>(param, context);
}

TEST(PythonLayer, WithoutAnInterpreterIsRejectedInOneSentence) {
  SetPythonLayerFactory(nullptr);
  EXPECT_THAT(
      [] { LayerRegistry::Default().Create(PythonParam(), {}); },
      ThrowsMessage<Error>(HasSubstr("layer 'mine' is in Python, but no interpreter runs")));
  EXPECT_FALSE(PythonLayersRun());
}

TEST(PythonLayer, IsFoundInAPrototxt) {
  EXPECT_FALSE(MayHavePythonLayer("layer { name: 'a' type: 'ReLU' }"));
  EXPECT_TRUE(MayHavePythonLayer("layer { name: 'b' type: 'Python' }"));
  EXPECT_TRUE(MayHavePythonLayer("layer { name: \"b\" type: \"Python\" }"));
}

TEST(PythonLayer, IsCreatedByTheFactory) {
  SetPythonLayerFactory(MakeTwice);
  EXPECT_TRUE(PythonLayersRun());
  EXPECT_EQ(LayerRegistry::Default().Create(PythonParam(), {})->name(), "mine");
  SetPythonLayerFactory(nullptr);
}

}  // namespace

std::vector<LayerCase> PythonLayerCases() {
  LayerCase row{"python", "type: 'Python'", {{{2, 3}}}, [](const Arrays& bottoms, const Arrays&) {
                  Arrays tops = bottoms;
                  for (float& value : tops[0].values) value *= 2;
                  return tops;
                }};
  row.prepare_context = [](NetContext*) { SetPythonLayerFactory(MakeTwice); };
  return {row};
}
const bool kPythonLayerCases = AddLayerCases(PythonLayerCases);

}  // namespace hearth::caffe
