#pragma once

#include <cstdint>
#include <memory>

#include "hearth/caffe/kernels/onednn_convolution.h"
#include "hearth/caffe/tensor/tensor.h"

namespace hearth::caffe {

// y = x w + b in int8 for trained nets, by oneDNN. Weights are rounded to 255 levels per output,
// and x to 255 levels per image (or row of a matrix). An image's scale depends only on that image,
// so its result does not depend on the rest of its minibatch. Sums are integers. An object belongs
// to one layer and its thread. Failures are hearth::Error.
class Int8Product {
 public:
  // Returns true if oneDNN can use VNNI instructions; otherwise logs a warning once. Without VNNI,
  // int8 is no faster than float32, and oneDNN halves the weights for inputs with negative values.
  static bool IsSupported();
  // Returns null if int8 is not supported, if oneDNN has no fast kernel for these sizes, or if a
  // sum has too many products for 32 bits (more than 133,144). The caller then computes in float32.
  static std::unique_ptr<Int8Product> OfConvolution(const OnednnConvolution::Spec& spec);
  // x is [rows, inputs], w [outputs, inputs] and y [rows, outputs].
  struct Matrices {
    int64_t rows, inputs, outputs;
    bool operator==(const Matrices&) const = default;
  };
  static std::unique_ptr<Int8Product> OfMatrices(const Matrices& sizes);
  ~Int8Product();

  // Like OnednnConvolution::Forward(), but `w` is read only in the first call and after
  // ForgetWeights().
  void Forward(const Tensor& x, const Tensor& w, const Tensor& b, Tensor& y);
  void ForgetWeights();

 private:
  struct Primitives;
  explicit Int8Product(std::unique_ptr<Primitives> primitives);
  // Takes ownership of `plan`, to which `x_of` and `make` may refer. Returns null if oneDNN has no
  // fast kernel for it.
  template <typename XOf, typename Make>
  static std::unique_ptr<Int8Product> Planned(std::unique_ptr<Primitives>& plan, const XOf& x_of,
                                              const Make& make);
  std::unique_ptr<Primitives> primitives_;
};

}  // namespace hearth::caffe
