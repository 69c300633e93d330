// The gradient of a bias.
#pragma once

#include <cstdint>

#include "hearth/caffe/tensor/tensor.h"

namespace hearth::caffe {

// Adds each of `count` rows of `size` values to sums.
void AddRows(const float* rows, int64_t count, int64_t size, float* sums);

// Adds the sum of dy to db [outputs]. dy is [rows, outputs] on any device, or [batch, outputs, ...]
// images on the CPU, in either layout of a blob. Multithreaded.
void AddBiasSum(const Tensor& dy, Tensor& db);

}  // namespace hearth::caffe
