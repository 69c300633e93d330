#pragma once

#include <cstddef>

#include "hearth/caffe/tensor/tensor.h"

namespace hearth::caffe {

// The device on which a net computes: the CPU, or a device with separate memory.
struct ComputeDevice {
  Device device = {};
  // True if the device has separate memory. Blobs then have a copy on the host and one on the
  // device, and layers that support the device compute with ATen's kernels. In tests, it may be
  // true for the CPU, which then behaves like a GPU.
  bool separate = false;

  static ComputeDevice Simulated() { return {Device{}, true}; }
  // Waits until the device has finished all submitted work.
  void Synchronize() const;
  bool operator==(const ComputeDevice&) const = default;
};

// Number of CUDA devices that this process can use. Returns 0 without a driver, or if no device
// library (device_library.h) can be used, which is logged. If there is a driver, the first call
// loads the device library. In tests, the environment variable HEARTH_SIMULATED_GPUS replaces the
// devices with that number of simulated ones. Throws kInvalidArgument if its value is not a number
// of devices. Thread-safe.
size_t CountCudaDevices();

// Initializes and returns the CUDA device with this index. Throws kInvalidArgument if there is no
// such device.
ComputeDevice CudaDevice(size_t index);

// Makes cuDNN measure all its algorithms and choose the fastest ones, in the whole process. The
// last bits of results may then differ between runs. CudaDevice() selects the deterministic
// algorithms again.
void UseFastestAlgorithms();

}  // namespace hearth::caffe
