// CUDA devices of this machine, as reported by the driver. Loads the driver's library on demand, so
// that the program also runs without one.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hearth::program {

// Properties of a device as (name, value), in the order of Caffe's device_query.
using DeviceFacts = std::vector<std::pair<std::string, std::string>>;

// Returns the properties of all devices, by device id; empty without a driver or devices.
std::vector<DeviceFacts> CudaDevices();

}  // namespace hearth::program
