// The size of a gradient, for clip_gradients.
#pragma once

#include <cstdint>

#include "hearth/caffe/net/tensor.h"

namespace hearth::caffe {

// Sum of squares in double precision. The same bits for any number of threads, so that ranks which
// hold the same gradient clip it alike.
double SumOfSquares(const float* values, int64_t count);

// The root of it, by ATen, wherever the tensor lies.
double NormOf(const Tensor& values);

}  // namespace hearth::caffe
