// BatchNorm and the Scale layer that follows it are one operation elsewhere. On a device their
// gradients are computed as one: three passes over memory instead of eight.
#pragma once

#include "hearth/caffe/net/net_graph.h"
#include "hearth/caffe/net/tensor.h"

namespace hearth::caffe {

// What a layer offers whose top has mean 0 and variance 1 in each channel.
class Normalization {
 public:
  struct Gradients {
    Tensor scale, bias;  // flat
  };
  virtual ~Normalization() = default;
  virtual bool has_minibatch_statistics() const = 0;
  virtual int64_t channels() const = 0;
  // From the gradient of scale * top + bias to that of its own bottom, which is written, so that
  // the layer's own Backward has nothing left to do. After a Forward.
  virtual Gradients BackwardScaled(const Tensor& gradient, const Tensor& scale) = 0;
};

// A layer that scales and shifts channels; it asks its normalization, where it has one, in
// Backward.
class ScalesNormalized {
 public:
  virtual ~ScalesNormalized() = default;
  // Whether it has a learned scale and shift per channel.
  virtual bool scales_channels(int64_t channels) const = 0;
  virtual void set_normalization(Normalization* normalization) = 0;
};

// Tells each Scale layer its normalization. The diff of a blob between the two is never written
// then.
void JoinNormalizations(NetGraph& graph);

}  // namespace hearth::caffe
