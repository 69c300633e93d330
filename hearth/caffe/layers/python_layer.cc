#include "hearth/caffe/layers/python_layer.h"

#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/all_layers.h"

namespace hearth::caffe {
namespace {

LayerRegistry::Factory& TheFactory() {
  static LayerRegistry::Factory factory;
  return factory;
}

}  // namespace

void SetPythonLayerFactory(LayerRegistry::Factory factory) { TheFactory() = std::move(factory); }

void RegisterPythonLayer(LayerRegistry& registry) {
  registry.Add("Python", [](const LayerParameter& param, const NetContext& context) {
    Require(static_cast<bool>(TheFactory()), ErrorCode::kUnimplemented,
            "layer '{}': Python layers run in Python programs only (import hearth.caffe), not in "
            "the program hearth",
            param.name());
    return TheFactory()(param, context);
  });
}

}  // namespace hearth::caffe
