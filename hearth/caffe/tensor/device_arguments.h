// Conversions of arguments and results of the device library's operations.
#pragma once

#include "hearth/caffe/tensor/device_library.h"
#include "hearth/caffe/tensor/device_ops.h"

namespace hearth::caffe::device {

inline constexpr HearthDeviceValue kNone{HearthDeviceValue::kNone, 0, {}};

inline HearthDeviceValue ValueOf(const Operand& operand) { return operand.value(); }

inline HearthDeviceValue ValueOf(const Shape& integers) {
  return {HearthDeviceValue::kIntegers,
          static_cast<int32_t>(integers.size()),
          {.integers = integers.data()}};
}

// Runs an operation that returns a single tensor.
template <typename... Values>
Tensor New(HearthDeviceOperation operation, const Values&... values) {
  return Tensor::Adopt(CallDevice(operation, {values...}).values[0].tensor);
}

// Runs an operation that could write to an existing tensor, and lets it create a new one.
template <typename... Arguments>
Tensor Made(HearthDeviceOperation operation, const Arguments&... arguments) {
  return New(operation, kNone, ValueOf(arguments)...);
}

}  // namespace hearth::caffe::device
