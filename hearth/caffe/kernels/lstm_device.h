// All steps of an LSTM layer on a CUDA device in one kernel launch.
#pragma once

#include <cstdint>

#include "hearth/caffe/tensor/tensor.h"

namespace hearth::caffe {

// Contiguous float32 arrays on one device, as in LstmLayer. `steps` is T, `rows` N, `size` H.
struct DeviceLstmArrays {
  int64_t steps, rows, size;
  Tensor weight;    // 4H x H
  Tensor cont;      // T x N
  Tensor gates;     // T x N x 4H: the inputs' contribution, replaced by the gates
  Tensor cells;     // T+1 x N x H: the first N x H are inputs
  Tensor squashed;  // T x N x H
  Tensor hidden;    // T x N x H
  Tensor carried;   // T x N x H
};

// Returns false if the arrays are not on a CUDA device, or for more than 256 outputs, whose
// products are large enough to be launched one by one. `first` contains the hidden values before
// step 0, N x H.
bool LstmForward(const DeviceLstmArrays& arrays, const Tensor& first);

// Computes the gradients of the gates' sums, T x N x 4H, from the gradients of the hidden values.
// Returns false like LstmForward().
bool LstmBackward(const DeviceLstmArrays& arrays, const Tensor& d_hidden, const Tensor& d_gates);

}  // namespace hearth::caffe
