// Where a net computes: on the CPU, or on a device with memory of its own.
#pragma once

#include <cstddef>

#include "hearth/caffe/net/tensor.h"

namespace hearth::caffe {

struct ComputeDevice {
  Device device = {};
  // Has memory of its own: blobs then have a copy on each side, and layers that can compute with
  // ATen's kernels. On the CPU, for tests: all is done as on a GPU, without one.
  bool separate = false;

  static ComputeDevice Simulated() { return {Device{}, true}; }
  // Waits until all work that the device was given is done.
  void Synchronize() const;
  bool operator==(const ComputeDevice&) const = default;
};

// The CUDA devices that this process may use; 0 where there is no driver, or no device library
// (device_library.h) for it, which is logged. The first call where there is a driver loads that
// library. The environment variable HEARTH_SIMULATED_GPUS, for tests, replaces them by that many
// simulated ones; throws kInvalidArgument where it is no number of devices. Thread-safe.
size_t CountCudaDevices();

// The CUDA device of that number, ready for use. Throws kInvalidArgument where there is none.
ComputeDevice CudaDevice(size_t index);

// From here on cuDNN measures all its algorithms and takes the fastest, for the whole process:
// results may then differ in the last bits from run to run. CudaDevice() goes back to those that
// are deterministic.
void UseFastestAlgorithms();

}  // namespace hearth::caffe
