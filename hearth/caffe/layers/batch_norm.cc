// BatchNorm: normalizes every channel to mean 0 and variance 1. The Scale layer scales and shifts.
#include <cmath>
#include <tuple>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/net/join_normalization.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"
#include "hearth/caffe/tensor/parallel.h"

namespace hearth::caffe {
namespace {

// y = (x - mean) * factor per channel, where factor = 1 / sqrt(variance + eps) (Ioffe and Szegedy
// 2015). In training, mean and variance are computed from the minibatch (the variance with divisor
// m, the number of values per channel), and each Forward updates the parameters, where f stands for
// moving_average_fraction:
//   blobs[0] = f * blobs[0] + mean, blobs[1] = f * blobs[1] + variance * m / (m - 1),
//   blobs[2] = f * blobs[2] + 1.
// With global statistics, mean and variance are blobs[0] / blobs[2] and blobs[1] / blobs[2]. The
// parameters have no gradient.
class BatchNormLayer : public Layer, public Normalization {
 public:
  using Layer::Layer;

  bool has_minibatch_statistics() const override { return !global_; }
  int64_t channels() const override { return channels_; }

  Gradients BackwardScaled(const Tensor& gradient, const Tensor& scale) override {
    // Calls ATen's gradient with the top as the input. The top has mean 0 and variance 1, so eps is
    // 0, and the factor that normalized the bottom is multiplied into the weight. The call also
    // returns the gradients of scale and bias: the sums of gradient * top and of gradient.
    const Tensor weight = scale * factor_.squeeze(1);
    const auto [dx, d_scale, d_bias] = device::batch_norm_backward(
        statistics_, Channels(output_->device_data()), Channels(gradient), weight, zeros_, ones_);
    bottom_->SetDeviceDiff(dx);
    gradient_is_done_ = true;
    return {d_scale, d_bias};
  }

  LayerTraits traits() const override {
    return {.allows_in_place = true, .keeps_statistics = true};
  }

  void SetUp(const Blobs& bottom, const Blobs& top) override {
    const BatchNormParameter& param = param_.batch_norm_param();
    // As in Caffe, a TEST net with `use_global_stats: false` updates the statistics, too.
    global_ = param.has_use_global_stats() ? param.use_global_stats() : context().phase == TEST;
    channels_ = bottom[0]->num_axes() == 1 ? 1 : bottom[0]->shape(1);
    blobs_ = {std::make_shared<Blob>(Shape{channels_}), std::make_shared<Blob>(Shape{channels_}),
              std::make_shared<Blob>(Shape{1})};
    for (int i = 0; i < 3; ++i) {
      blobs_[i]->data().zero_();
      // Adds missing `param` fields, because their default lr_mult of 1 would let the solver change
      // the statistics.
      if (i == param_.param_size()) param_.add_param()->set_lr_mult(0);
      Require(
          param_.param(i).lr_mult() == 0, ErrorCode::kInvalidArgument,
          "param {} has lr_mult {}, but the statistics of BatchNorm are not learned: set it to 0",
          i, param_.param(i).lr_mult());
    }
  }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    const int64_t channels = bottom[0]->num_axes() == 1 ? 1 : bottom[0]->shape(1);
    Require(channels == channels_, ErrorCode::kInvalidArgument,
            "the layer was made for {} channels, but the bottom has shape {}", channels_,
            bottom[0]->ShapeString());
    if (top[0] != bottom[0]) top[0]->ReshapeLike(*bottom[0]);
    if (keeps_output(bottom, top)) normalized_.ReshapeLike(*bottom[0]);
    rows_ = bottom[0]->shape(0);
    inner_ = bottom[0]->count() / std::max<int64_t>(1, rows_ * channels_);
    mean_.resize(channels_);
    variance_.resize(channels_);
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    if (on_device()) return ForwardOnDevice(bottom, top);
    if (global_) {
      UseRunningStatistics();
    } else {
      Measure(bottom[0]->data_ptr());
      UpdateRunningStatistics();
    }
    const float* x = bottom[0]->data_ptr();
    float* y = top[0]->data_ptr();
    ForEachChannel([&](int64_t c) {
      const float mean = mean_[c], factor = Factor(c);
      ForEachRow(c, [&](int64_t i) { y[i] = (x[i] - mean) * factor; });
    });
    if (keeps_output(bottom, top)) normalized_.data().copy_(top[0]->data());
  }

  // dx = (dy - mean(dy) - y * mean(dy * y)) * factor, with means over the values of a channel.
  // Global statistics are constants, so dx = dy * factor.
  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    if (!propagate_down[0]) return;
    if (on_device()) return BackwardOnDevice(top, bottom);
    const float* y = (keeps_output(bottom, top) ? normalized_ : *top[0]).data_ptr();
    const float* dy = top[0]->diff_ptr();
    float* dx = bottom[0]->diff_ptr();
    const auto count = static_cast<float>(rows_ * inner_);
    ForEachChannel([&](int64_t c) {
      const float factor = Factor(c);
      if (global_) {
        ForEachRow(c, [&](int64_t i) { dx[i] = dy[i] * factor; });
        return;
      }
      double sum_dy = 0, sum_dy_y = 0;
      ForEachRow(c, [&](int64_t i) {
        sum_dy += dy[i];
        sum_dy_y += dy[i] * y[i];
      });
      const float mean_dy = static_cast<float>(sum_dy) / count;
      const float mean_dy_y = static_cast<float>(sum_dy_y) / count;
      ForEachRow(c, [&](int64_t i) { dx[i] = (dy[i] - mean_dy - y[i] * mean_dy_y) * factor; });
    });
  }

 private:
  // Views a tensor as [rows, channels, values of a channel]. Statistics are taken over the first
  // and the last axis.
  Tensor Channels(const Tensor& tensor) const { return tensor.view({rows_, channels_, inner_}); }

  void ForwardOnDevice(const Blobs& bottom, const Blobs& top) {
    const Tensor x = Channels(bottom[0]->device_data());
    if (!global_) {
      top[0]->SetDeviceData(NormalizedOnDevice(x));
    } else {
      const Tensor& weight = blobs_[2]->device_data();
      const Tensor scale = device::where(weight == 0, 0.f, weight.reciprocal());
      const Tensor mean = (blobs_[0]->device_data() * scale).unsqueeze(1);
      const Tensor variance = (blobs_[1]->device_data() * scale).unsqueeze(1);
      factor_ = (variance + param_.batch_norm_param().eps()).rsqrt_();
      top[0]->SetDeviceData((x - mean).mul_(factor_));
    }
    bottom_ = bottom[0];
    output_ = keeps_output(bottom, top) ? &normalized_ : top[0];
    if (output_ != top[0]) normalized_.device_data().copy_(top[0]->device_data());
  }

  // Returns the normalized x. Also computes its mean and variance and adds them to the running
  // statistics.
  Tensor NormalizedOnDevice(const Tensor& x) {
    if (!ones_.defined()) {
      ones_ = device::full({channels_}, 1, x);
      zeros_ = device::zeros_like(ones_);
      mean_and_variance_ = device::full({2, channels_}, 0, x);
    }
    // With a momentum of 1, ATen writes this minibatch's mean and unbiased variance to these
    // tensors.
    const Tensor mean = mean_and_variance_[0], variance = mean_and_variance_[1];
    statistics_ =
        device::batch_norm(x, ones_, zeros_, mean, variance, param_.batch_norm_param().eps());
    factor_ = statistics_.inverse_deviation.unsqueeze(1);
    if (rows_ * inner_ == 1) variance.zero_();  // ATen's unbiased variance is 0 / 0
    const double keep = param_.batch_norm_param().moving_average_fraction();
    const Tensor now[] = {mean, variance, ones_.narrow(0, 0, 1)};
    for (int i = 0; i < 3; ++i) {
      Tensor& sum = blobs_[i]->device_data();
      device::add_out(sum, now[i], sum, keep);
    }
    // The tensor is moved out, because a second reference in statistics_ would keep its memory
    // allocated for longer.
    return std::exchange(statistics_.y, Tensor());
  }

  void BackwardOnDevice(const Blobs& top, const Blobs& bottom) {
    if (std::exchange(gradient_is_done_, false)) return;
    const Tensor& dy = top[0]->device_diff();
    if (global_) {
      Tensor dx = Channels(bottom[0]->device_diff());
      device::mul_out(dx, Channels(dy), factor_);
      return;
    }
    BackwardScaled(dy, ones_);
    gradient_is_done_ = false;
  }

  // The gradient needs Forward's top, unless the statistics are constants.
  bool keeps_output(const Blobs& bottom, const Blobs& top) const {
    return !global_ && (top[0] == bottom[0] || top_overwritten());
  }

  float Factor(int64_t c) const {
    return 1.f / std::sqrt(variance_[c] + param_.batch_norm_param().eps());
  }

  void UseRunningStatistics() {
    const float weight = *blobs_[2]->data_ptr();
    // `weight` is 0 before the first update; as in Caffe, mean and variance are then 0.
    const float scale = weight == 0 ? 0 : 1 / weight;
    for (int64_t c = 0; c < channels_; ++c) {
      mean_[c] = scale * blobs_[0]->data_ptr()[c];
      variance_[c] = scale * blobs_[1]->data_ptr()[c];
    }
  }

  // The variance takes two passes, because the mean of squares minus the squared mean loses
  // precision. One thread computes all sums of a channel, so the result does not depend on the
  // number of threads.
  void Measure(const float* x) {
    const auto count = static_cast<double>(rows_ * inner_);
    ForEachChannel([&](int64_t c) {
      double sum = 0, squares = 0;
      ForEachRow(c, [&](int64_t i) { sum += x[i]; });
      const auto mean = static_cast<float>(sum / count);
      ForEachRow(c, [&](int64_t i) { squares += (x[i] - mean) * (x[i] - mean); });
      mean_[c] = mean;
      variance_[c] = static_cast<float>(squares / count);
    });
  }

  // The running variance is unbiased (factor m / (m - 1)); the variance used to normalize is not.
  void UpdateRunningStatistics() {
    const float keep = param_.batch_norm_param().moving_average_fraction();
    const auto count = static_cast<float>(rows_ * inner_);
    const float unbiased = count > 1 ? count / (count - 1) : 1;
    *blobs_[2]->data_ptr() = *blobs_[2]->data_ptr() * keep + 1;
    for (int64_t c = 0; c < channels_; ++c) {
      float& mean = blobs_[0]->data_ptr()[c];
      float& variance = blobs_[1]->data_ptr()[c];
      mean = mean * keep + mean_[c];
      variance = variance * keep + variance_[c] * unbiased;
    }
  }

  template <typename Function>
  void ForEachChannel(Function f) {
    ParallelFor(0, channels_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) f(c);
    });
  }

  // Calls f(index) for every value of channel c.
  template <typename Function>
  void ForEachRow(int64_t c, Function f) const {
    for (int64_t n = 0; n < rows_; ++n) {
      const int64_t begin = (n * channels_ + c) * inner_;
#pragma GCC ivdep
      for (int64_t i = begin; i < begin + inner_; ++i) f(i);
    }
  }

  bool global_ = false;
  int64_t channels_ = 0, rows_ = 0, inner_ = 0;
  std::vector<float> mean_, variance_;  // used in the last Forward
  Tensor factor_;                       // used in the last Forward on a device: [channels, 1]
  Blob normalized_;                     // a copy of the top, if it is needed
  // Blobs and statistics of the last Forward on a device.
  Blob *bottom_ = nullptr, *output_ = nullptr;
  device::BatchNorm statistics_;
  Tensor ones_, zeros_, mean_and_variance_;  // one per channel
  bool gradient_is_done_ = false;            // computed by BackwardScaled()
};

}  // namespace

void RegisterBatchNorm(LayerRegistry& registry) { registry.Add<BatchNormLayer>("BatchNorm"); }

}  // namespace hearth::caffe
