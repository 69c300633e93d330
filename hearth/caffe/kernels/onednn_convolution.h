#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hearth/caffe/tensor/tensor.h"

namespace hearth::caffe {

// Convolution over one to three axes on the CPU by oneDNN, into the caller's memory. An object
// belongs to one layer and its thread. Failures are hearth::Error.
class OnednnConvolution {
 public:
  // Sizes of one to three spatial axes, such as height, width. `dilation` is 1 for adjacent values,
  // as in Caffe.
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
  // Shapes: x [batch, channels, input], w [outputs, channels / group, kernel], b [outputs] or
  // undefined, y [batch, outputs, output]. x, y, dx and dy may have either layout of a blob.
  void Forward(const Tensor& x, const Tensor& w, const Tensor& b, Tensor& y);
  // Overwrites dx.
  void BackwardData(const Tensor& dy, const Tensor& w, Tensor& dx);
  // dw = beta dw + the gradient, where beta is 0 or 1. AddBiasSum() computes the bias's gradient.
  void BackwardWeights(const Tensor& x, const Tensor& dy, float beta, Tensor& dw);

 private:
  struct Primitives;
  std::unique_ptr<Primitives> primitives_;
};

}  // namespace hearth::caffe
