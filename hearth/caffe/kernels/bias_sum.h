// The gradient of a bias.
#pragma once

#include <cstdint>

#include "hearth/caffe/net/tensor.h"

namespace hearth::caffe {

// sums += each of `count` rows of `size` values.
void AddRows(const float* rows, int64_t count, int64_t size, float* sums);

// db [outputs] += the sum of dy: [rows, outputs], on any device, or on the CPU [batch, outputs,
// ...], pictures in either layout of a blob. On several threads.
void AddBiasSum(const Tensor& dy, Tensor& db);

}  // namespace hearth::caffe
