// Dropout: in training, zeroes a random part of the values and scales up the rest.
#include <ATen/Parallel.h>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/all_layers.h"
#include "hearth/caffe/layers/neuron.h"

namespace hearth::caffe {
namespace {

// A well mixed number for each pair of key and index. Masks come from it instead of a stored array:
// they cost no memory traffic, and do not depend on the number of threads.
inline uint32_t Mix(uint64_t key, uint32_t index) {
  uint32_t h = index * 0x9E3779B9u + static_cast<uint32_t>(key);
  h = (h ^ (h >> 16)) * 0x21F0AAADu;
  h = (h ^ (h >> 15) ^ static_cast<uint32_t>(key >> 32)) * 0xD35A2D97u;
  return h ^ (h >> 15);
}

class DropoutLayer : public NeuronLayer {
 public:
  DropoutLayer(const LayerParameter& param, const NetContext& context)
      : NeuronLayer(param, context) {
    const float ratio = param.dropout_param().dropout_ratio();
    Require(ratio > 0 && ratio < 1, ErrorCode::kInvalidArgument,
            "dropout_ratio must be between 0 and 1, not {}", ratio);
    threshold_ = static_cast<uint32_t>(static_cast<double>(ratio) * 4294967296.0);
    scale_ = 1.f / (1.f - ratio);
  }

 protected:
  void Apply(const at::Tensor& x, at::Tensor& y) override {
    if (context().phase == TRAIN) {
      key_ = context().random->engine()();
      Mask(x, y);
    } else if (x.data_ptr() != y.data_ptr()) {
      y.copy_(x);
    }
  }

  void Gradient(const at::Tensor& dy, const at::Tensor&, const at::Tensor&,
                at::Tensor& dx) override {
    if (context().phase == TRAIN) {
      Mask(dy, dx);
    } else if (dy.data_ptr() != dx.data_ptr()) {
      dx.copy_(dy);
    }
  }

  bool GradientNeedsInput() const override { return false; }
  bool GradientNeedsOutput() const override { return false; }

 private:
  void Mask(const at::Tensor& in, at::Tensor& out) const {
    const float* from = in.const_data_ptr<float>();
    float* to = out.data_ptr<float>();
    at::parallel_for(0, in.numel(), kElementGrain, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) {
        const bool keep = Mix(key_, static_cast<uint32_t>(i)) >= threshold_;
        to[i] = keep ? from[i] * scale_ : 0.f;
      }
    });
  }

  uint32_t threshold_;
  float scale_;
  uint64_t key_ = 0;  // of the mask of the last Forward
};

}  // namespace

void RegisterDropout(LayerRegistry& registry) { registry.Add<DropoutLayer>("Dropout"); }

}  // namespace hearth::caffe
