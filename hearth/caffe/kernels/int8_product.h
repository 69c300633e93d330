#pragma once

#include <cstdint>
#include <memory>

#include "hearth/caffe/kernels/onednn_convolution.h"
#include "hearth/caffe/tensor/tensor.h"

namespace hearth::caffe {

// y = x w + b in int8 for trained nets, by oneDNN. Weights are rounded to 255 levels per output,
// and x to 255 levels per image (or row of a matrix), whose scale follows from that image alone:
// its result does not depend on the rest of its minibatch. Sums are integers. Belongs to one layer
// and its thread. Failures are hearth::Error.
class Int8Product {
 public:
  // False, and logged once, if oneDNN may not use VNNI instructions: without them it is no faster
  // than float32, and oneDNN halves the weights of inputs with negative values.
  static bool IsSupported();
  // Null if that is false, if oneDNN has no fast kernel for it, or if a sum has more products than
  // fit into 32 bits (133,144): compute in float32 then.
  static std::unique_ptr<Int8Product> OfConvolution(const OnednnConvolution::Spec& spec);
  // x is [rows, inputs], w [outputs, inputs] and y [rows, outputs].
  struct Matrices {
    int64_t rows, inputs, outputs;
    bool operator==(const Matrices&) const = default;
  };
  static std::unique_ptr<Int8Product> OfMatrices(const Matrices& sizes);
  ~Int8Product();

  // As OnednnConvolution::Forward(); `w` is read in the first call, and after ForgetWeights().
  void Forward(const Tensor& x, const Tensor& w, const Tensor& b, Tensor& y);
  void ForgetWeights();

 private:
  struct Primitives;
  explicit Int8Product(std::unique_ptr<Primitives> primitives);
  // Takes `plan`, to which the functions refer; null if oneDNN has no fast kernel for it.
  template <typename XOf, typename Make>
  static std::unique_ptr<Int8Product> Planned(std::unique_ptr<Primitives>& plan, const XOf& x_of,
                                              const Make& make);
  std::unique_ptr<Primitives> primitives_;
};

}  // namespace hearth::caffe
