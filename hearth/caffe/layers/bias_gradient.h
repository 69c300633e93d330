// Sums rows of gradients into a bias's, as a product with ones.
#pragma once

#include <ATen/ATen.h>

#include "hearth/caffe/blob.h"

namespace hearth::caffe {

class BiasGradient {
 public:
  void Reshape(int64_t rows, const ComputeDevice& device) {
    if (!ones_.defined() || ones_.numel() != rows) ones_ = at::ones({rows}, device.device);
  }

  // `dy`: rows x values, on the device.
  void AddTo(Blob& bias, const at::Tensor& dy) const {
    const auto [db, beta] = bias.diff_to_add_to();
    db.addmv_(dy.t(), ones_, beta);
  }

 private:
  at::Tensor ones_;
};

}  // namespace hearth::caffe
