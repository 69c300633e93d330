// Layers that users write in Python. The Python module sets the factory that makes them.
#pragma once

#include <string_view>

#include "hearth/caffe/net/layer_registry.h"

namespace hearth::caffe {

// What makes a layer of type "Python". Set once, before nets are built; without it (where no
// interpreter runs) such a layer throws kUnimplemented.
void SetPythonLayerFactory(LayerRegistry::Factory factory);

// Whether that was set.
bool PythonLayersRun();

// Whether a net's or a solver's prototxt contains the string "Python", as such a layer's type does.
// A false positive does no harm: an interpreter runs every net.
bool MayHavePythonLayer(std::string_view prototxt);

}  // namespace hearth::caffe
