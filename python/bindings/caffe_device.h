// Device of this process's nets: pycaffe's mode. Access with the GIL only.
#pragma once

#include "hearth/caffe/net/compute_device.h"

namespace hearth::bindings {

// Device for nets and solvers built after this call.
const caffe::ComputeDevice& ModeDevice();

}  // namespace hearth::bindings
