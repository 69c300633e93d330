// The gradient of a bias that was added at every place of pictures.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace hearth::caffe {

// sums += each of `count` rows of `size` values.
void AddRows(const float* rows, int64_t count, int64_t size, float* sums);

// db [outputs] += dy [batch, outputs, height, width] over all pictures and places, in either layout
// of a blob, on several threads.
void AddBiasSum(const at::Tensor& dy, at::Tensor& db);

}  // namespace hearth::caffe
