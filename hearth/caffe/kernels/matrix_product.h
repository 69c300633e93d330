// Products of float32 matrices, into memory that the caller owns: by oneDNN, and on devices by
// ATen. Thread-safe. Failures are hearth::Error.
#pragma once

#include "hearth/caffe/net/blob.h"
#include "hearth/caffe/net/tensor.h"

namespace hearth::caffe {

// All matrices have two axes, in any order in memory. Prepared kernels are cached per thread: calls
// should repeat their shapes.

// c = a b, plus `bias` (one per column) where that is defined.
void Multiply(const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& c);

// c = beta c + a b, where beta is 0 or 1; at 0, c may hold anything.
void AddProduct(float beta, const Tensor& a, const Tensor& b, const Tensor& c);
// The gradient of `weight`, of two axes, += a b, on its device.
void AddProductToDiff(const Tensor& a, const Tensor& b, Blob& weight);

}  // namespace hearth::caffe
