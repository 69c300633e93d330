// The CUDA devices of this machine, as its driver describes them. The driver's library is loaded
// when asked for, so that the program runs where there is none.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hearth::program {

// What one device is and can do, as (what, value), in the order of Caffe's device_query.
using DeviceFacts = std::vector<std::pair<std::string, std::string>>;

// By device id; empty without a driver or without devices.
std::vector<DeviceFacts> CudaDevices();

}  // namespace hearth::program
