// The library that computes on devices: loaded when the first device is requested, and never
// unloaded. The wheel has it for some versions of torch; `hearth build-device` compiles it for
// others.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "hearth/caffe/tensor/device_api.h"

namespace hearth::caffe {

// Empty if the library is available; otherwise the reason and the remedy, as one sentence. Loads
// the library. Thread-safe.
const std::string& DeviceLibraryProblem();

// Runs one operation of the library. Throws TensorError if it fails, kUnavailable without the
// library.
struct DeviceResults {
  HearthDeviceValue values[6];
  int32_t count;
};
DeviceResults CallDevice(HearthDeviceOperation operation,
                         std::initializer_list<HearthDeviceValue> arguments);

inline HearthDeviceValue DeviceInteger(int64_t value) {
  return {HearthDeviceValue::kInteger, 0, {.integer = value}};
}

// Sets the number of threads that the library uses on the host; no effect while it is not loaded.
void SetDeviceLibraryThreads(int count);

void ReleaseDeviceTensor(void* handle) noexcept;

}  // namespace hearth::caffe
