// One call of the device library: converts its arguments to ATen's types, and stores its results.
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <vector>

#include "hearth/caffe/tensor/device_api.h"

namespace hearth::device {

// Throws c10::Error if an argument is missing or has another type.
class Call {
 public:
  Call(const HearthDeviceValue* arguments, int32_t count, HearthDeviceValue* results,
       int32_t most_results)
      : arguments_(arguments), count_(count), results_(results), most_(most_results) {}

  const HearthDeviceValue& at(int i) const {
    TORCH_CHECK(i < count_, "the operation has no argument ", i);
    return arguments_[i];
  }
  bool has(int i) const { return at(i).type != HearthDeviceValue::kNone; }
  at::Tensor& tensor(int i) const {
    TORCH_CHECK(at(i).type == HearthDeviceValue::kTensor, "argument ", i, " is not a tensor");
    return *static_cast<at::Tensor*>(at(i).tensor);
  }
  // Converts a number to a tensor that does not affect the result's type or device.
  at::Tensor operand(int i) const;
  at::Scalar scalar(int i) const;
  double number(int i) const { return scalar(i).toDouble(); }
  int64_t integer(int i) const { return scalar(i).toLong(); }
  bool flag(int i) const { return integer(i) != 0; }
  at::IntArrayRef integers(int i) const {
    TORCH_CHECK(at(i).type == HearthDeviceValue::kIntegers, "argument ", i, " is not a list");
    return {at(i).integers, static_cast<size_t>(at(i).count)};
  }
  std::vector<at::Tensor> tensors(int i) const;
  void* pointer(int i) const { return at(i).pointer; }

  void Return(at::Tensor result);
  void Return(const std::vector<at::Tensor>& results);
  void GiveNothing() { Next(); }
  void GiveInteger(int64_t value) { Next() = {HearthDeviceValue::kInteger, 0, {.integer = value}}; }
  void GiveNumber(double value) { Next() = {HearthDeviceValue::kNumber, 0, {.number = value}}; }
  void GivePointer(void* value) { Next() = {HearthDeviceValue::kPointer, 0, {.pointer = value}}; }
  void GiveIntegers(at::IntArrayRef values);
  int32_t given() const { return given_; }

 private:
  HearthDeviceValue& Next();

  const HearthDeviceValue* const arguments_;
  const int32_t count_;
  HearthDeviceValue* const results_;
  const int32_t most_;
  int32_t given_ = 0;
};

using Operation = void (*)(Call&);
using Table = std::array<Operation, HEARTH_OP_COUNT>;
const Table& TheTable();

// Each function below adds one group of operations to the library's table.
void AddElementwise(Table& table);
void AddValues(Table& table);
void AddLayers(Table& table);
void AddDevices(Table& table);

}  // namespace hearth::device
