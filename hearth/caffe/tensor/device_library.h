// The library that computes on devices. It is loaded when the first device is requested, and never
// unloaded. The wheel contains it for some versions of torch; `hearth build-device` compiles it for
// others.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "hearth/caffe/tensor/device_api.h"

namespace hearth::caffe {

// Loads the library. Returns "" if that succeeds; otherwise one sentence with the reason and the
// remedy. Thread-safe.
const std::string& DeviceLibraryProblem();

// The results of one operation. CallDevice() runs an operation of the library; it throws
// TensorError if the operation fails, and kUnavailable if there is no library.
struct DeviceResults {
  HearthDeviceValue values[6];
  int32_t count;
};
DeviceResults CallDevice(HearthDeviceOperation operation,
                         std::initializer_list<HearthDeviceValue> arguments);

inline HearthDeviceValue DeviceInteger(int64_t value) {
  return {HearthDeviceValue::kInteger, 0, {.integer = value}};
}

// Sets the number of threads that the library uses on the host; no effect before it is loaded.
void SetDeviceLibraryThreads(int count);

void ReleaseDeviceTensor(void* handle) noexcept;

}  // namespace hearth::caffe
