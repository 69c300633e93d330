// Layers that users write in Python. An interpreter makes them: the Python module sets what does.
#pragma once

#include <string_view>

#include "hearth/caffe/net/layer_registry.h"

namespace hearth::caffe {

// What makes a layer of type "Python". Set once, before nets are built; without it (where no
// interpreter runs) such a layer throws kUnimplemented.
void SetPythonLayerFactory(LayerRegistry::Factory factory);

// Whether that was set.
bool PythonLayersRun();

// Whether a net's or a solver's prototxt has the word that such a layer's type is. Where the word
// is something else's name, nothing is lost: an interpreter runs every net.
bool MayHavePythonLayer(std::string_view prototxt);

}  // namespace hearth::caffe
