// On a device, computes the gradients of a BatchNorm layer and of the Scale layer after it
// together; other frameworks have one operation for both. This needs three passes over memory
// instead of eight.
#pragma once

#include "hearth/caffe/net/net_graph.h"
#include "hearth/caffe/tensor/tensor.h"

namespace hearth::caffe {

// Interface of a layer whose top has mean 0 and variance 1 in each channel.
class Normalization {
 public:
  // Gradients of the parameters of the Scale layer that reads the top.
  struct Gradients {
    Tensor scale, bias;  // one value per channel
  };
  virtual ~Normalization() = default;
  virtual bool has_minibatch_statistics() const = 0;
  virtual int64_t channels() const = 0;
  // Computes the gradient of the layer's bottom from `gradient`, the gradient of scale * top +
  // bias. Writes it to the bottom's diff, so the layer's Backward has nothing left to do. Must be
  // called after Forward.
  virtual Gradients BackwardScaled(const Tensor& gradient, const Tensor& scale) = 0;
};

// A layer that scales and shifts channels. Its Backward calls the normalization, if one is set.
class ScalesNormalized {
 public:
  virtual ~ScalesNormalized() = default;
  // Returns true if the layer learns one scale and one shift per channel.
  virtual bool scales_channels(int64_t channels) const = 0;
  virtual void set_normalization(Normalization* normalization) = 0;
};

// Joins each normalization layer to the Scale layer after it, if that is the only reader of its
// top. The diff of the blob between the two layers is then never written.
void JoinNormalizations(NetGraph& graph);

}  // namespace hearth::caffe
