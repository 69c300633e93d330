// A layer whose methods are those of a Python object. Its steps take the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include "caffe_blob.h"

namespace hearth::bindings {

// The layer as Python sees it: the user's own object for a Python layer, else a Layer that keeps
// `owner` alive.
nanobind::object LayerObject(caffe::Layer& layer, nanobind::handle owner);

}  // namespace hearth::bindings
