#include "hearth/caffe/layers/python_layer.h"

#include <algorithm>
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

bool PythonLayersRun() { return static_cast<bool>(TheFactory()); }

bool HasPythonLayer(const NetParameter& net) {
  const auto& layers = net.layer();
  return std::any_of(layers.begin(), layers.end(),
                     [](const LayerParameter& layer) { return layer.type() == "Python"; });
}

void RegisterPythonLayer(LayerRegistry& registry) {
  registry.Add("Python", [](const LayerParameter& param, const NetContext& context) {
    Require(PythonLayersRun(), ErrorCode::kUnimplemented,
            "layer '{}' is in Python, but no interpreter runs in this process: start it as "
            "`python -m hearth.caffe.program`",
            param.name());
    return TheFactory()(param, context);
  });
}

}  // namespace hearth::caffe
