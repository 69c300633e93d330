// Products of float32 matrices, into memory that the caller owns: on AVX-512 by oneDNN, which on
// some CPUs is several times faster than ATen's library where the rows are few, elsewhere and on
// other devices by ATen. Thread-safe. Failures are hearth::Error.
#pragma once

#include <ATen/core/Tensor.h>

#include "hearth/caffe/net/blob.h"

namespace hearth::caffe {

// All matrices have two axes, in any order in memory. Prepared kernels are cached per thread: calls
// should repeat their shapes.

// c = a b, plus `bias` (one per column) where that is defined.
void Multiply(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias, at::Tensor c);

// c = beta c + a b, where beta is 0 or 1; at 0, c may hold anything.
void AddProduct(float beta, const at::Tensor& a, const at::Tensor& b, const at::Tensor& c);
// The gradient of `weight`, of two axes, += a b, on its device.
void AddProductToDiff(const at::Tensor& a, const at::Tensor& b, Blob& weight);

}  // namespace hearth::caffe
