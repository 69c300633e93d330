// Layers that users write in Python, created by a factory that the Python module sets.
#pragma once

#include <string_view>

#include "hearth/caffe/net/layer_registry.h"

namespace hearth::caffe {

// Sets the factory of layers of type "Python". Call it once, before nets are built. Without a
// factory (no interpreter), creating such a layer throws kUnimplemented.
void SetPythonLayerFactory(LayerRegistry::Factory factory);

// Returns true if the factory was set.
bool PythonLayersRun();

// Returns true if the prototxt of a net or solver contains the string "Python" in quotes, as the
// type of such a layer is written. A false positive is harmless, because an interpreter can run
// every net.
bool MayHavePythonLayer(std::string_view prototxt);

}  // namespace hearth::caffe
