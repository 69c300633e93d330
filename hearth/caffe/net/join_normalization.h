// Computes the gradients of a BatchNorm and its following Scale layer, which are one operation in
// other frameworks, together on a device: three passes over memory instead of eight.
#pragma once

#include "hearth/caffe/net/net_graph.h"
#include "hearth/caffe/tensor/tensor.h"

namespace hearth::caffe {

// Interface of a layer whose top has mean 0 and variance 1 in each channel.
class Normalization {
 public:
  // Gradients of the Scale layer's parameters.
  struct Gradients {
    Tensor scale, bias;  // flat
  };
  virtual ~Normalization() = default;
  virtual bool has_minibatch_statistics() const = 0;
  virtual int64_t channels() const = 0;
  // Computes the gradient of the layer's bottom from that of scale * top + bias, and writes it, so
  // that the layer's Backward has nothing left to do. After a Forward.
  virtual Gradients BackwardScaled(const Tensor& gradient, const Tensor& scale) = 0;
};

// A layer that scales and shifts channels; in Backward it calls its normalization, if it has one.
class ScalesNormalized {
 public:
  virtual ~ScalesNormalized() = default;
  // Returns true if it has a learned scale and shift per channel.
  virtual bool scales_channels(int64_t channels) const = 0;
  virtual void set_normalization(Normalization* normalization) = 0;
};

// Sets the normalization of each Scale layer. The diff of the blob between the two is then never
// written.
void JoinNormalizations(NetGraph& graph);

}  // namespace hearth::caffe
