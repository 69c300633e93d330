// Layers that users write in Python. An interpreter makes them: the Python module sets what does.
#pragma once

#include "hearth/caffe/layer_registry.h"

namespace hearth::caffe {

// What makes a layer of type "Python". Set once, before nets are built; without it (in the program
// `hearth`) such a layer throws kUnimplemented.
void SetPythonLayerFactory(LayerRegistry::Factory factory);

}  // namespace hearth::caffe
