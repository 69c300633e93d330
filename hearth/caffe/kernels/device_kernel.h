// A CUDA kernel that is compiled from source at run time, by the NVRTC library in PyTorch's wheels.
// One binary therefore runs with and without GPUs, on every GPU and version of CUDA.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "hearth/caffe/tensor/tensor.h"

namespace hearth::caffe {

// A CUDA kernel and its source. Thread-safe. Each kernel is created once per process and never
// destroyed.
class DeviceKernel {
 public:
  // `source` defines `extern "C" __global__ void name(...)`.
  DeviceKernel(std::string name, std::string source)
      : name_(std::move(name)), source_(std::move(source)) {}

  // Size of a launch.
  struct Grid {
    int64_t blocks;
    int64_t threads;            // per block
    int64_t shared_floats = 0;  // dynamic shared memory per block
  };
  // Launches the kernel on the device's current stream; `arguments` are pointers to its arguments.
  // Does nothing and returns false if `device` is not a CUDA device or if the kernel cannot be
  // compiled (logged once). Throws kInternal if the driver rejects the launch.
  bool Launch(const Device& device, const Grid& grid, std::vector<void*> arguments);

 private:
  void* Find(const Device& device);

  const std::string name_, source_;
  std::mutex mutex_;
  std::map<int, void*> functions_;  // by device; null if compilation failed
};

}  // namespace hearth::caffe
