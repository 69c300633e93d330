// Products of float32 matrices, written to memory of the caller: by oneDNN, and on devices by ATen.
// Thread-safe. Failures are hearth::Error.
#pragma once

#include "hearth/caffe/tensor/blob.h"
#include "hearth/caffe/tensor/tensor.h"

namespace hearth::caffe {

// All matrices have two axes, in any memory order. Prepared kernels are cached per thread: calls
// should repeat their shapes.

// c = a b, plus `bias` (one per column) if defined.
void Multiply(const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& c);

// c = beta c + a b, where beta is 0 or 1; if it is 0, c may be uninitialized.
void AddProduct(float beta, const Tensor& a, const Tensor& b, const Tensor& c);
// Adds a b to the gradient of `weight`, which has two axes, on its device.
void AddProductToDiff(const Tensor& a, const Tensor& b, Blob& weight);

}  // namespace hearth::caffe
