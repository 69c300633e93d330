// Layers that users write in Python. An interpreter makes them: the Python module sets what does.
#pragma once

#include "hearth/caffe/layer_registry.h"

namespace hearth::caffe {

// What makes a layer of type "Python". Set once, before nets are built; without it (where no
// interpreter runs) such a layer throws kUnimplemented.
void SetPythonLayerFactory(LayerRegistry::Factory factory);

// Whether that was set.
bool PythonLayersRun();

bool HasPythonLayer(const NetParameter& net);

}  // namespace hearth::caffe
