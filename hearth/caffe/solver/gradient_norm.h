// The norm of a gradient, for clip_gradients.
#pragma once

#include <cstdint>

namespace hearth::caffe {

// Sum of squares in double precision. It has the same bits for any number of threads, so that ranks
// with the same gradient clip it by the same factor.
double SumOfSquares(const float* values, int64_t count);

}  // namespace hearth::caffe
