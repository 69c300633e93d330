// Two-dimensional convolution on CPU by oneDNN, into memory that the caller owns: ATen's calls of
// the same library allocate their results, and every step pays for fresh pages and a copy.
// Belongs to one layer and its thread. Failures are hearth::Error.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace hearth::caffe {

class OnednnConvolution {
 public:
  // Spatial sizes are height, width. `dilation` counts from 1, as Caffe does.
  struct Spec {
    int64_t batch, channels, outputs, group;
    std::vector<int64_t> input, output, kernel, stride, pad, dilation;
    bool has_bias;
    bool bfloat16 = false;  // products of bfloat16 values, summed in float32
    bool operator==(const Spec&) const = default;
  };

  explicit OnednnConvolution(const Spec& spec);
  ~OnednnConvolution();

  const Spec& spec() const;
  // x [batch, channels, input], w [outputs, channels / group, kernel], b [outputs] or undefined,
  // y [batch, outputs, output]. x and y, and below dx and dy, may be in either layout of a blob.
  void Forward(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b, at::Tensor& y);
  // Overwrites dx.
  void BackwardData(const at::Tensor& dy, const at::Tensor& w, at::Tensor& dx);
  // dw = beta dw + the gradient, where beta is 0 or 1. The bias's gradient is AddBiasSum()'s.
  void BackwardWeights(const at::Tensor& x, const at::Tensor& dy, float beta, at::Tensor& dw);

 private:
  class Reordered;
  struct Primitives;
  std::unique_ptr<Primitives> primitives_;
};

}  // namespace hearth::caffe
