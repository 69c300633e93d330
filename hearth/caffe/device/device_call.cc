#include "hearth/caffe/device/device_call.h"

#include <ATen/ScalarOps.h>

#include <utility>

namespace hearth::device {

at::Tensor Call::operand(int i) const {
  if (at(i).type == HearthDeviceValue::kTensor) return tensor(i);
  at::Tensor number = c10::scalar_to_tensor(scalar(i));
  // Marks the number as a wrapped number, as ATen does with numbers from Python, so that it does
  // not promote the other operand's type.
  number.unsafeGetTensorImpl()->set_wrapped_number(true);
  return number;
}

at::Scalar Call::scalar(int i) const {
  const HearthDeviceValue& value = at(i);
  if (value.type == HearthDeviceValue::kInteger) return value.integer;
  TORCH_CHECK(value.type == HearthDeviceValue::kNumber, "argument ", i, " is not a number");
  return value.number;
}

std::vector<at::Tensor> Call::tensors(int i) const {
  TORCH_CHECK(at(i).type == HearthDeviceValue::kTensors, "argument ", i, " is not a list");
  std::vector<at::Tensor> list;
  list.reserve(static_cast<size_t>(at(i).count));
  for (int32_t j = 0; j < at(i).count; ++j) {
    list.push_back(*static_cast<at::Tensor*>(at(i).tensors[j]));
  }
  return list;
}

HearthDeviceValue& Call::Next() {
  TORCH_CHECK(given_ < most_, "the operation has more results than the caller expects");
  results_[given_] = {};
  return results_[given_++];
}

void Call::Return(at::Tensor result) {
  if (!result.defined()) return GiveNothing();
  // The handle points to a tensor on the heap, which the caller frees by Release().
  Next() = {HearthDeviceValue::kTensor, 0, {.tensor = new at::Tensor(std::move(result))}};
}

void Call::Return(const std::vector<at::Tensor>& results) {
  // The library owns the array until the thread's next call (device_api.h); the caller owns the
  // handles in it.
  thread_local std::vector<void*> handles;
  handles.clear();
  for (const at::Tensor& result : results) handles.push_back(new at::Tensor(result));
  Next() = {HearthDeviceValue::kTensors,
            static_cast<int32_t>(handles.size()),
            {.tensors = handles.data()}};
}

void Call::GiveIntegers(at::IntArrayRef values) {
  // Like the array of handles above, valid until the thread's next call.
  thread_local std::vector<int64_t> integers;
  integers.assign(values.begin(), values.end());
  Next() = {HearthDeviceValue::kIntegers,
            static_cast<int32_t>(integers.size()),
            {.integers = integers.data()}};
}

}  // namespace hearth::device
