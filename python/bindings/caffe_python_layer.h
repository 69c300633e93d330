// Layer implemented by a Python object. Its steps take the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include "caffe_blob.h"

namespace hearth::bindings {

// Returns the layer's Python object: the user's object for a Python layer, else a Layer that keeps
// `owner` alive.
nanobind::object LayerObject(caffe::Layer& layer, nanobind::handle owner);

}  // namespace hearth::bindings
