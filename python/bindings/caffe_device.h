// The compute device that pycaffe's set_mode_cpu or set_mode_gpu chose for this process. Access
// with the GIL only.
#pragma once

#include "hearth/caffe/tensor/compute_device.h"

namespace hearth::bindings {

// Device for nets and solvers that are built from now on.
const caffe::ComputeDevice& ModeDevice();

}  // namespace hearth::bindings
