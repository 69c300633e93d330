// The library that computes on devices: loaded when the first device is asked for, and kept. It
// comes with the wheel for some versions of torch; `hearth build-device` compiles it for others.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "hearth/caffe/net/device_api.h"

namespace hearth::caffe {

// Empty where the library is there and works; else why not, and what to do, as one sentence.
// Loads it. Thread-safe.
const std::string& DeviceLibraryProblem();

// Runs one operation of the library. Throws TensorError where it fails, kUnavailable where the
// library is not there.
struct DeviceResults {
  HearthDeviceValue values[6];
  int32_t count;
};
DeviceResults CallDevice(HearthDeviceOperation operation,
                         std::initializer_list<HearthDeviceValue> arguments);

inline HearthDeviceValue DeviceInteger(int64_t value) {
  return {HearthDeviceValue::kInteger, 0, {.integer = value}};
}

// The threads that the library computes with on the host; does nothing while it is not loaded.
void SetDeviceLibraryThreads(int count);

void ReleaseDeviceTensor(void* handle) noexcept;

}  // namespace hearth::caffe
