#pragma once

#include <cstddef>

#include "hearth/caffe/tensor/tensor.h"

namespace hearth::caffe {

// The device of a net: the CPU, or a device with its own memory.
struct ComputeDevice {
  Device device = {};
  // Has its own memory: blobs then have a copy on each side, and layers that can compute with
  // ATen's kernels. On the CPU, for tests: behaves like a GPU, without one.
  bool separate = false;

  static ComputeDevice Simulated() { return {Device{}, true}; }
  // Waits until the device has finished all submitted work.
  void Synchronize() const;
  bool operator==(const ComputeDevice&) const = default;
};

// Number of CUDA devices that this process can use; 0 without a driver or without a device library
// (device_library.h) for it, which is logged. If there is a driver, the first call loads that
// library. The environment variable HEARTH_SIMULATED_GPUS, for tests, replaces the devices by that
// many simulated ones; throws kInvalidArgument if it is not a number of devices. Thread-safe.
size_t CountCudaDevices();

// The CUDA device with that index, initialized. Throws kInvalidArgument if there is none.
ComputeDevice CudaDevice(size_t index);

// Lets cuDNN measure all its algorithms and choose the fastest, process-wide: the last bits of
// results may then differ between runs. CudaDevice() restores the deterministic algorithms.
void UseFastestAlgorithms();

}  // namespace hearth::caffe
