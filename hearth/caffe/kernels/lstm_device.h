// The steps of an LSTM layer on a CUDA device, all in one kernel: no launch per step.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace hearth::caffe {

// Contiguous float32 arrays of one device, as LstmLayer has them. `steps` is T, `rows` N, `size` H.
struct DeviceLstmArrays {
  int64_t steps, rows, size;
  at::Tensor weight;    // 4H x H
  at::Tensor cont;      // T x N
  at::Tensor gates;     // T x N x 4H: the inputs' part, then the gates
  at::Tensor cells;     // T+1 x N x H; the first are given
  at::Tensor squashed;  // T x N x H
  at::Tensor hidden;    // T x N x H
  at::Tensor carried;   // T x N x H
};

// Whether it was done: false on other devices and for more than 256 outputs, where the products
// are large enough to be launched one by one. `first` is N x H: the hidden values before step 0.
bool LstmForward(const DeviceLstmArrays& arrays, const at::Tensor& first);

// From the gradients of the hidden values to those of the gates' inputs, T x N x 4H.
bool LstmBackward(const DeviceLstmArrays& arrays, const at::Tensor& d_hidden,
                  const at::Tensor& d_gates);

}  // namespace hearth::caffe
