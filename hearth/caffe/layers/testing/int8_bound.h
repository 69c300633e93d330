// An error bound for tests of layers that compute in int8.
#pragma once

#include "hearth/caffe/layers/testing/layer_testing.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {

// Bounds the error of a sum of products x * w whose factors are rounded to steps of 1 / 127 of the
// largest one. Each product adds |x| dw + dx (|w| + dw), where dx and dw are half a step. The
// layer's first parameter must be w, with one row per output.
inline double Int8Bound(LayerRun& run, int64_t outputs) {
  const Tensor w = run.layer().blobs()[0]->data();
  const double largest_x = LargestMagnitude(run.bottoms()[0]->data());
  const double largest_w = LargestMagnitude(w), half_step = 1.0 / 254;
  const auto products = static_cast<double>(w.numel() / outputs);
  return products * largest_x * largest_w * half_step * (2 + half_step);
}

}  // namespace hearth::caffe
