// All steps of an LSTM layer on a CUDA device in one kernel, without a launch per step.
#pragma once

#include <cstdint>

#include "hearth/caffe/tensor/tensor.h"

namespace hearth::caffe {

// Contiguous float32 arrays on one device, as in LstmLayer. `steps` is T, `rows` N, `size` H.
struct DeviceLstmArrays {
  int64_t steps, rows, size;
  Tensor weight;    // 4H x H
  Tensor cont;      // T x N
  Tensor gates;     // T x N x 4H: the inputs' part, replaced by the gates
  Tensor cells;     // T+1 x N x H; the first step's are inputs
  Tensor squashed;  // T x N x H
  Tensor hidden;    // T x N x H
  Tensor carried;   // T x N x H
};

// Returns false on other devices and for more than 256 outputs, whose products are large enough to
// be launched one by one. `first` is N x H: the hidden values before step 0.
bool LstmForward(const DeviceLstmArrays& arrays, const Tensor& first);

// Computes the gradients of the gates' inputs, T x N x 4H, from those of the hidden values.
bool LstmBackward(const DeviceLstmArrays& arrays, const Tensor& d_hidden, const Tensor& d_gates);

}  // namespace hearth::caffe
