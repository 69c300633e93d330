// Products of float32 matrices, by oneDNN on the CPU and by ATen on devices. Results are written to
// the caller's memory. Thread-safe. Failures are hearth::Error.
#pragma once

#include "hearth/caffe/tensor/blob.h"
#include "hearth/caffe/tensor/tensor.h"

namespace hearth::caffe {

// All matrices have two axes, in any memory order. Each thread caches its prepared kernels, so
// callers should reuse the same shapes.

// c = a b, plus `bias` (one per column) if defined.
void Multiply(const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& c);

// c = beta c + a b, where beta is 0 or 1; if it is 0, c may be uninitialized.
void AddProduct(float beta, const Tensor& a, const Tensor& b, const Tensor& c);
// Adds a b to the gradient of `weight`, a blob with two axes, on the weight's device.
void AddProductToDiff(const Tensor& a, const Tensor& b, Blob& weight);

}  // namespace hearth::caffe
