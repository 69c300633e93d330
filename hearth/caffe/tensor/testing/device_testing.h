// Test helper: a device other than the CPU.
#pragma once

#include "hearth/caffe/tensor/compute_device.h"

namespace hearth::caffe {

// The first CUDA device, or a simulated one if there is none.
inline ComputeDevice DeviceForTests() {
  return CountCudaDevices() > 0 ? CudaDevice(0) : ComputeDevice::Simulated();
}

}  // namespace hearth::caffe
