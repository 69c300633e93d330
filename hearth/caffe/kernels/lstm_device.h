// The steps of an LSTM layer on a CUDA device, all in one kernel: no launch per step.
#pragma once

#include <cstdint>

#include "hearth/caffe/net/tensor.h"

namespace hearth::caffe {

// Contiguous float32 arrays of one device, as LstmLayer has them. `steps` is T, `rows` N, `size` H.
struct DeviceLstmArrays {
  int64_t steps, rows, size;
  Tensor weight;    // 4H x H
  Tensor cont;      // T x N
  Tensor gates;     // T x N x 4H: the inputs' part, then the gates
  Tensor cells;     // T+1 x N x H; the first are given
  Tensor squashed;  // T x N x H
  Tensor hidden;    // T x N x H
  Tensor carried;   // T x N x H
};

// Whether it was done: false on other devices and for more than 256 outputs, where the products
// are large enough to be launched one by one. `first` is N x H: the hidden values before step 0.
bool LstmForward(const DeviceLstmArrays& arrays, const Tensor& first);

// From the gradients of the hidden values to those of the gates' inputs, T x N x 4H.
bool LstmBackward(const DeviceLstmArrays& arrays, const Tensor& d_hidden, const Tensor& d_gates);

}  // namespace hearth::caffe
