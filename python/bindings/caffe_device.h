// Where nets of this process compute: pycaffe's mode. Read and set with the GIL only.
#pragma once

#include "hearth/caffe/net/compute_device.h"

namespace hearth::bindings {

// For nets and solvers that are built from now on.
const caffe::ComputeDevice& ModeDevice();

}  // namespace hearth::bindings
