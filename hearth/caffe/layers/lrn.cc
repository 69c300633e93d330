// Local response normalization: y = x * s^-beta, s = k + alpha / n * (sum of squares around x).
#include "hearth/base/error.h"
#include "hearth/caffe/kernels/neighbour_sum.h"
#include "hearth/caffe/kernels/response_norm.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"
#include "hearth/caffe/tensor/parallel.h"

namespace hearth::caffe {
namespace {

// Scratch images per thread: the values to sum, an intermediate sum over rows, and powers.
constexpr int64_t kScratchImages = 3;

class LrnLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    const bool across = param_.lrn_param().norm_region() != LRNParameter::WITHIN_CHANNEL;
    return {.channels_last = across ? ChannelsLast::kSame : ChannelsLast::kNo};
  }

  void SetUp(const Blobs& bottom, const Blobs& top) override {
    const LRNParameter& param = param_.lrn_param();
    within_ = param.norm_region() == LRNParameter::WITHIN_CHANNEL;
    size_ = param.local_size();
    Require(size_ % 2 == 1, ErrorCode::kInvalidArgument, "local_size must be odd, not {}", size_);
    // With WITHIN_CHANNEL, Caffe ignores k and adds the sum to 1.
    k_ = within_ ? 1.f : param.k();
    // Caffe computes WITHIN_CHANNEL by average pooling with padding, which divides by the square of
    // the size, at the border, too.
    alpha_ = param.alpha() / static_cast<float>(within_ ? size_ * size_ : size_);
    beta_ = param.beta();
  }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    Require(bottom[0]->num_axes() == 4, ErrorCode::kInvalidArgument,
            "LRN takes a bottom of 4 axes, not one of shape {}", bottom[0]->ShapeString());
    top[0]->ReshapeLike(*bottom[0]);
    scale_.ReshapeLike(*bottom[0]);
    channels_last_ = bottom[0]->layout() == Layout::kChannelsLast;
    image_ = {bottom[0]->shape(1), bottom[0]->shape(2), bottom[0]->shape(3)};
    if (!channels_last_) scratch_.resize(ThreadCount() * kScratchImages * image_.size());
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    if (on_device()) return ForwardOnDevice(*bottom[0], *top[0]);
    const float* x = bottom[0]->data_ptr();
    float* y = top[0]->data_ptr();
    float* inverse = scale_.data_ptr();
    ForEachImage(bottom[0]->shape(0), [&](int64_t offset, float* scratch) {
      const int64_t count = image_.size();
      const float* in = x + offset;
      float* s = inverse + offset;
      if (channels_last_) return norm().Forward(PixelsOf(in), s, y + offset);
      for (int64_t i = 0; i < count; ++i) scratch[i] = in[i] * in[i];
      Sum(scratch, scratch + count, s);
      for (int64_t i = 0; i < count; ++i) s[i] = 1.f / (k_ + alpha_ * s[i]);
      PowersOf(s, beta_, scratch, count);
      for (int64_t i = 0; i < count; ++i) y[offset + i] = in[i] * scratch[i];
    });
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    if (!propagate_down[0]) return;
    if (on_device()) return BackwardOnDevice(*top[0], *bottom[0]);
    const float* x = bottom[0]->data_ptr();
    const float* dy = top[0]->diff_ptr();
    const float* inverse = scale_.data_ptr();
    float* dx = bottom[0]->diff_ptr();
    // dx = dy * s^-beta - 2 * alpha / n * beta * x * (sum of dy * x * s^(-beta - 1) around x).
    const float slope = 2 * alpha_ * beta_;
    ForEachImage(bottom[0]->shape(0), [&](int64_t offset, float* scratch) {
      const int64_t count = image_.size();
      const float *in = x + offset, *g = dy + offset, *s = inverse + offset;
      float* to = dx + offset;
      // Reads the bottom instead of the top, which a later layer may have changed in place.
      if (channels_last_) return norm().Backward(PixelsOf(in), s, g, to);
      float* power = scratch + 2 * count;
      PowersOf(s, beta_, power, count);
      for (int64_t i = 0; i < count; ++i) scratch[i] = g[i] * in[i] * power[i] * s[i];
      Sum(scratch, scratch + count, to);
      for (int64_t i = 0; i < count; ++i) to[i] = g[i] * power[i] - slope * in[i] * to[i];
    });
  }

 private:
  // Returns the sum over the window around each value, in a new tensor.
  Tensor SumAround(const Tensor& values) const {
    const int64_t half = size_ / 2, channels = values.size(1);
    if (within_) {
      return device::sum_pool2d(values, size_);
    }
    // Sums the channels in the window by adding shifted copies, because ATen has no pooling over
    // channels alone.
    Tensor sum = values.clone();
    for (int64_t d = 1; d <= std::min(half, channels - 1); ++d) {
      const int64_t common = channels - d;
      sum.narrow(1, 0, common).add_(values.narrow(1, d, common));
      sum.narrow(1, d, common).add_(values.narrow(1, 0, common));
    }
    return sum;
  }

  void ForwardOnDevice(Blob& bottom, Blob& top) {
    const Tensor &x = bottom.device_data(), &scale = scale_.device_data();
    scale.copy_(SumAround(x * x).mul_(alpha_).add_(k_));
    device::mul_out(top.device_data(), x, scale.pow(-beta_));
  }

  void BackwardOnDevice(Blob& top, Blob& bottom) {
    const Tensor &x = bottom.device_data(), &scale = scale_.device_data();
    // The same formula as on the host, with scale_ = s instead of 1 / s.
    const Tensor scaled = top.device_diff() * scale.pow(-beta_);
    const Tensor sums = SumAround(scaled * x / scale);
    device::sub_out(bottom.device_diff(), scaled, x * sums, 2 * alpha_ * beta_);
  }

  // Calls f(offset of the image, scratch memory) on several threads.
  template <typename Function>
  void ForEachImage(int64_t count, Function f) {
    ParallelFor(0, count, 1, [&](int64_t begin, int64_t end) {
      float* scratch = scratch_.data();
      if (!channels_last_) scratch += ThreadNumber() * kScratchImages * image_.size();
      for (int64_t n = begin; n < end; ++n) f(n * image_.size(), scratch);
    });
  }

  void Sum(const float* values, float* scratch, float* sums) const {
    if (within_) {
      SumWithinChannels(image_, size_, values, scratch, sums);
    } else {
      SumAcrossChannels(image_, size_, values, sums);
    }
  }

  ResponseNorm norm() const { return {size_, k_, alpha_, beta_}; }
  ResponseNorm::Pixels PixelsOf(const float* image) const {
    return {image_.height * image_.width, image_.channels, image};
  }

  bool within_ = false, channels_last_ = false;
  int64_t size_ = 1;
  float k_ = 1, alpha_ = 1, beta_ = 0.75f;
  ImageShape image_;
  Blob scale_;  // s on devices, 1 / s on the host
  std::vector<float> scratch_;
};

}  // namespace

void RegisterLrn(LayerRegistry& registry) { registry.Add<LrnLayer>("LRN"); }

}  // namespace hearth::caffe
