// Python: a layer that the user implements as a Python class.
#include "hearth/caffe/layers/python_layer.h"

#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/net/layer_error.h"
#include "hearth/caffe/net/layer_registry.h"

namespace hearth::caffe {
namespace {

// The factory of Python layers; empty in programs without an interpreter. It is a local static
// variable, so that it is initialized before its first use.
LayerRegistry::Factory& TheFactory() {
  static LayerRegistry::Factory factory;
  return factory;
}

}  // namespace

void SetPythonLayerFactory(LayerRegistry::Factory factory) { TheFactory() = std::move(factory); }

bool PythonLayersRun() { return static_cast<bool>(TheFactory()); }

bool MayHavePythonLayer(std::string_view prototxt) {
  return prototxt.find("\"Python\"") != std::string_view::npos ||
         prototxt.find("'Python'") != std::string_view::npos;
}

void RegisterPythonLayer(LayerRegistry& registry) {
  registry.Add("Python", [](const LayerParameter& param, const NetContext& context) {
    RequireInLayer(param.name(), PythonLayersRun(), ErrorCode::kUnimplemented,
                   "layer '{}' is in Python, but no interpreter runs in this process: start it as "
                   "`python -m hearth.caffe.program`",
                   param.name());
    return TheFactory()(param, context);
  });
}

}  // namespace hearth::caffe
