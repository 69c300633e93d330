// Layers that users write in Python, created by a factory that the Python module sets.
#pragma once

#include <string_view>

#include "hearth/caffe/net/layer_registry.h"

namespace hearth::caffe {

// Sets the factory of layers of type "Python". Once, before nets are built; without it (no
// interpreter) such a layer throws kUnimplemented.
void SetPythonLayerFactory(LayerRegistry::Factory factory);

// Returns true if it was set.
bool PythonLayersRun();

// Returns true if the prototxt of a net or solver contains the string "Python", as such a layer's
// type does. A false positive is harmless: an interpreter runs every net.
bool MayHavePythonLayer(std::string_view prototxt);

}  // namespace hearth::caffe
