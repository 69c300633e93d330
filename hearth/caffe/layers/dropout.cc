// Dropout: in training, zeroes a random part of the values and scales up the rest.
#include "hearth/base/error.h"
#include "hearth/caffe/layers/neuron.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"
#include "hearth/caffe/tensor/parallel.h"

namespace hearth::caffe {
namespace {

// Hashes a key and an index to a well-mixed number. Masks are recomputed from it instead of stored,
// so they use no memory bandwidth and do not depend on the number of threads. The shifts and
// multipliers come from hash-prospector's integer hash with the lowest bias for two rounds. The
// key's low half is added before the first round, its high half is mixed in before the second.
inline uint32_t Mix(uint64_t key, uint32_t index) {
  uint32_t h = index * 0x9E3779B9u + static_cast<uint32_t>(key);
  h = (h ^ (h >> 16)) * 0x21F0AAADu;
  h = (h ^ (h >> 15) ^ static_cast<uint32_t>(key >> 32)) * 0xD35A2D97u;
  return h ^ (h >> 15);
}

// In TRAIN y = x * mask / (1 - ratio), where the mask is 1 with probability 1 - ratio, else 0; in
// TEST y = x. dx is dy with the same mask and scale.
class DropoutLayer : public NeuronLayer {
 public:
  DropoutLayer(const LayerParameter& param, const NetContext& context)
      : NeuronLayer(param, context) {
    const float ratio = param.dropout_param().dropout_ratio();
    Require(ratio >= 0 && ratio < 1, ErrorCode::kInvalidArgument,
            "dropout_ratio must be from 0 to below 1, not {}", ratio);
    // A value is dropped if its 32-bit number is below ratio * 2^32.
    threshold_ = static_cast<uint32_t>(static_cast<double>(ratio) * 4294967296.0);
    scale_ = 1.f / (1.f - ratio);
  }

 protected:
  void Apply(const Tensor& x, Tensor& y) override {
    if (context().phase == TRAIN) {
      // Backward recomputes the same mask from this key.
      key_ = context().random->engine()();
      Mask(x, y);
    } else if (x.data_ptr() != y.data_ptr()) {
      y.copy_(x);
    }
  }

  void Gradient(const Tensor& dy, const Tensor&, const Tensor&, Tensor& dx) override {
    if (context().phase == TRAIN) {
      Mask(dy, dx);
    } else if (dy.data_ptr() != dx.data_ptr()) {
      dx.copy_(dy);
    }
  }

  void ApplyOnDevice(const Tensor& x, Tensor& y) override {
    if (context().phase == TRAIN) key_ = context().random->engine()();
    MaskOnDevice(x, y);
  }
  void GradientOnDevice(const Tensor& dy, const Tensor&, const Tensor&, Tensor& dx) override {
    MaskOnDevice(dy, dx);
  }

  bool GradientNeedsInput() const override { return false; }
  bool GradientNeedsOutput() const override { return false; }

 private:
  void Mask(const Tensor& in, Tensor& out) const {
    const float* from = in.data_ptr();
    float* to = out.data_ptr();
    ParallelFor(0, in.numel(), kElementGrain, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) {
        const bool keep = Mix(key_, static_cast<uint32_t>(i)) >= threshold_;
        // `scaled` is computed unconditionally, so that the loop vectorizes.
        const float scaled = from[i] * scale_;
        to[i] = keep ? scaled : 0.f;
      }
    });
  }

  // Computes the same mask as Mask(), bit for bit, by 32-bit arithmetic in tensors of 64-bit
  // integers.
  void MaskOnDevice(const Tensor& in, Tensor& out) const {
    if (context().phase != TRAIN) {
      if (in.data_ptr() != out.data_ptr()) out.copy_(in);
      return;
    }
    // A product of two 32-bit numbers may overflow a signed 64-bit integer and wrap. Its low 32
    // bits are still correct, and the others are masked off.
    constexpr int64_t kWord = 0xFFFFFFFF;
    const auto low = static_cast<int64_t>(key_ & kWord), high = static_cast<int64_t>(key_ >> 32);
    const auto shift = [](const Tensor& h, int64_t bits) {
      return device::bitwise_right_shift(h, bits);
    };
    Tensor h = device::arange(in.numel(), in);
    h.mul_(int64_t{0x9E3779B9}).add_(low).bitwise_and_(kWord);
    h.bitwise_xor_(shift(h, 16)).mul_(int64_t{0x21F0AAAD}).bitwise_and_(kWord);
    h.bitwise_xor_(shift(h, 15)).bitwise_xor_(high).mul_(int64_t{0xD35A2D97}).bitwise_and_(kWord);
    h.bitwise_xor_(shift(h, 15));
    const Tensor kept = h >= static_cast<int64_t>(threshold_);
    device::mul_out(out, in, kept.to(HEARTH_FLOAT).mul_(scale_).view_as(in));
  }

  uint32_t threshold_;
  float scale_;
  uint64_t key_ = 0;  // key of the last Forward's mask
};

}  // namespace

void RegisterDropout(LayerRegistry& registry) { registry.Add<DropoutLayer>("Dropout"); }

}  // namespace hearth::caffe
