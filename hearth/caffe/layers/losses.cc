// Losses against class labels or targets: HingeLoss, MultinomialLogisticLoss and
// SigmoidCrossEntropyLoss.
#include <algorithm>
#include <cmath>

#include "hearth/base/error.h"
#include "hearth/caffe/kernels/device_labels.h"
#include "hearth/caffe/kernels/labels.h"
#include "hearth/caffe/kernels/loss_normalizer.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"

namespace hearth::caffe {
namespace {

// Base of losses of scores (bottom 0) against labels or targets (bottom 1).
class LabelLossLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    return {.arity = {2, 2, 1, 1}, .is_loss = true, .automatic_tops = true, .never_forced = {1}};
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    Require(!propagate_down[1], ErrorCode::kInvalidArgument, "{} has no gradient for its labels",
            type());
    if (propagate_down[0]) Gradient(*top[0]->read_diff(), bottom);
  }

 protected:
  virtual void Gradient(float loss_weight, const Blobs& bottom) = 0;
};

// Base of losses of rows of scores with one label per row.
class RowLossLayer : public LabelLossLayer {
 public:
  using LabelLossLayer::LabelLossLayer;

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    rows_ = bottom[0]->shape(0);
    classes_ = bottom[0]->count(1);
    layout().RequireLabels(*bottom[1]);
    top[0]->Reshape({});
  }

 protected:
  int64_t Label(const Blobs& bottom, int64_t row) const {
    return *ClassLabel(bottom[1]->data_ptr(), row, classes_, std::nullopt);
  }
  void TakeLabelsOnDevice(const Blobs& bottom) {
    device_labels_ = DeviceLabels::Of(*bottom[1], layout(), std::nullopt).index.squeeze(2);
  }
  Tensor Rows(const Tensor& scores) const { return scores.view({rows_, classes_}); }
  ClassLayout layout() const { return {rows_, classes_, 1}; }

  int64_t rows_ = 0, classes_ = 0;
  Tensor device_labels_;  // rows x 1, of the last Forward on a device
};

// loss = 1 / N * sum of m, or of m^2 for norm L2, over rows and classes. The margin m of a score is
//   max(0, 1 + score) for wrong classes and max(0, 1 - score) for the right one.
// The derivative of m is 1 for wrong classes and -1 for the right one where m > 0, else 0. The
// derivative of m^2 is 2 m times that.
class HingeLossLayer : public RowLossLayer {
 public:
  using RowLossLayer::RowLossLayer;

  void Forward(const Blobs& bottom, const Blobs& top) override {
    if (on_device()) {
      TakeLabelsOnDevice(bottom);
      const Tensor margins = MarginsOnDevice(bottom).first;
      const Tensor sum = (squared() ? margins.square() : margins).sum();
      top[0]->device_data().copy_(sum / rows_);
      return;
    }
    const float* x = bottom[0]->data_ptr();
    double sum = 0;
    for (int64_t n = 0; n < rows_; ++n) {
      const int64_t label = Label(bottom, n);
      for (int64_t c = 0; c < classes_; ++c) {
        const float margin = Margin(x[n * classes_ + c], c == label);
        sum += squared() ? margin * margin : margin;
      }
    }
    *top[0]->data_ptr() = static_cast<float>(sum / static_cast<double>(rows_));
  }

 protected:
  void Gradient(float loss_weight, const Blobs& bottom) override {
    const float scale = loss_weight / static_cast<float>(rows_);
    if (on_device()) {
      const auto [margins, signs] = MarginsOnDevice(bottom);
      Tensor dx = Rows(bottom[0]->device_diff());
      device::mul_out(dx, squared() ? margins * 2 : margins.sign(), signs);
      dx.mul_(scale);
      return;
    }
    const float* x = bottom[0]->data_ptr();
    float* dx = bottom[0]->diff_ptr();
    for (int64_t n = 0; n < rows_; ++n) {
      const int64_t label = Label(bottom, n);
      for (int64_t c = 0; c < classes_; ++c) {
        const int64_t i = n * classes_ + c;
        const float margin = Margin(x[i], c == label);
        const float size = squared() ? 2 * margin : margin > 0 ? 1.f : 0.f;
        dx[i] = scale * (c == label ? -size : size);
      }
    }
  }

 private:
  // Returns the margins, and the sign of each score in its margin: -1 for the right class, else 1.
  std::pair<Tensor, Tensor> MarginsOnDevice(const Blobs& bottom) const {
    const Tensor x = Rows(bottom[0]->device_data());
    const Tensor signs = device::ones_like(x).scatter_(1, device_labels_, -1);
    return {(signs * x).add_(1).clamp_min_(0), signs};
  }

  bool squared() const { return param_.hinge_loss_param().norm() == HingeLossParameter::L2; }
  static float Margin(float score, bool is_label) {
    return std::max(0.f, 1.f + (is_label ? -score : score));
  }
};

// loss = -1 / N * sum of log(p[n, label_n]), where bottom 0 contains the probabilities p. The
// gradient is -1 / (N * p) at the label, else 0.
class MultinomialLogisticLossLayer : public RowLossLayer {
 public:
  using RowLossLayer::RowLossLayer;

  void Forward(const Blobs& bottom, const Blobs& top) override {
    if (on_device()) {
      TakeLabelsOnDevice(bottom);
      const Tensor right = Rows(bottom[0]->device_data()).gather(1, device_labels_);
      top[0]->device_data().copy_(right.clamp_min(kSmallest).log_().sum() / -rows_);
      return;
    }
    const float* p = bottom[0]->data_ptr();
    double sum = 0;
    for (int64_t n = 0; n < rows_; ++n) {
      sum -= std::log(std::max(p[n * classes_ + Label(bottom, n)], kSmallest));
    }
    *top[0]->data_ptr() = static_cast<float>(sum / static_cast<double>(rows_));
  }

 protected:
  void Gradient(float loss_weight, const Blobs& bottom) override {
    const float scale = -loss_weight / static_cast<float>(rows_);
    if (on_device()) {
      const Tensor right = Rows(bottom[0]->device_data()).gather(1, device_labels_);
      const Tensor slopes = right.clamp_min(kSmallest).reciprocal_().mul_(scale);
      Rows(bottom[0]->device_diff()).zero_().scatter_(1, device_labels_, slopes);
      return;
    }
    const float* p = bottom[0]->data_ptr();
    float* dx = bottom[0]->diff_ptr();
    std::fill_n(dx, bottom[0]->count(), 0.f);
    for (int64_t n = 0; n < rows_; ++n) {
      const int64_t i = n * classes_ + Label(bottom, n);
      dx[i] = scale / std::max(p[i], kSmallest);
    }
  }

 private:
  // Caffe's kLOG_THRESHOLD, a lower bound of p.
  static constexpr float kSmallest = 1e-20f;
};

// Independent logistic regressions with targets t from 0 to 1. With s = sigmoid(x):
//   loss = -1 / D * sum of (t * log(s) + (1 - t) * log(1 - s)), dx = loss weight / D * (s - t).
// As in Caffe, D is by default the batch size, while SoftmaxWithLoss counts valid labels.
class SigmoidCrossEntropyLossLayer : public LabelLossLayer {
 public:
  SigmoidCrossEntropyLossLayer(const LayerParameter& param, const NetContext& context)
      : LabelLossLayer(param, context),
        normalizer_(LossNormalizer::Read(param.loss_param(), LossParameter::BATCH_SIZE)),
        ignored_(IgnoredLabel(param.loss_param())) {}

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    Require(bottom[0]->count() == bottom[1]->count(), ErrorCode::kInvalidArgument,
            "scores of shape {} and targets of shape {} must hold equally many values",
            bottom[0]->ShapeString(), bottom[1]->ShapeString());
    top[0]->Reshape({});
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    if (on_device()) return ForwardOnDevice(bottom, top);
    const float *x = bottom[0]->data_ptr(), *t = bottom[1]->data_ptr();
    double sum = 0;
    int64_t valid = 0;
    for (int64_t i = 0; i < bottom[0]->count(); ++i) {
      if (IsIgnored(t[i])) continue;
      // Adds max(x, 0) - x * t + log(1 + e^-|x|), in which no exponential overflows.
      sum -= x[i] * (t[i] - (x[i] >= 0 ? 1.f : 0.f)) - std::log1p(std::exp(-std::fabs(x[i])));
      ++valid;
    }
    divisor_ = normalizer_.Divisor(bottom[0]->shape(0), bottom[0]->count(1), valid);
    *top[0]->data_ptr() = static_cast<float>(sum) / divisor_;
  }

 protected:
  void Gradient(float loss_weight, const Blobs& bottom) override {
    const float scale = loss_weight / divisor_;
    if (on_device()) {
      Tensor& dx = bottom[0]->device_diff();
      const Tensor targets = bottom[1]->device_data().view_as(dx);
      device::sub_out(dx, bottom[0]->device_data().sigmoid(), targets);
      dx.mul_(scale);
      if (ignored_) dx.masked_fill_(targets.to(HEARTH_LONG) == *ignored_, 0);
      return;
    }
    const float *x = bottom[0]->data_ptr(), *t = bottom[1]->data_ptr();
    float* dx = bottom[0]->diff_ptr();
    for (int64_t i = 0; i < bottom[0]->count(); ++i) {
      dx[i] = IsIgnored(t[i]) ? 0.f : scale * (1.f / (1.f + std::exp(-x[i])) - t[i]);
    }
  }

 private:
  void ForwardOnDevice(const Blobs& bottom, const Blobs& top) {
    const Tensor& x = bottom[0]->device_data();
    const Tensor t = bottom[1]->device_data().view_as(x);
    // The same formula as on the host, with max(x, 0).
    Tensor losses = x.clamp_min(0) - x * t + (-x.abs()).exp_().log1p_();
    int64_t valid = x.numel();
    if (ignored_) {
      const Tensor ignored = t.to(HEARTH_LONG) == *ignored_;
      losses.masked_fill_(ignored, 0);
      valid -= ignored.sum().item();
    }
    divisor_ = normalizer_.Divisor(bottom[0]->shape(0), bottom[0]->count(1), valid);
    top[0]->device_data().copy_(losses.sum() / divisor_);
  }

  // As in Caffe, the target is truncated to an integer, so ignore_label 0 ignores every soft target
  // below 1.
  bool IsIgnored(float target) const { return TruncatedLabel(target) == ignored_; }

  const LossNormalizer normalizer_;
  const std::optional<int64_t> ignored_;
  float divisor_ = 1;
};

}  // namespace

void RegisterLosses(LayerRegistry& registry) {
  registry.Add<HingeLossLayer>("HingeLoss");
  registry.Add<MultinomialLogisticLossLayer>("MultinomialLogisticLoss");
  registry.Add<SigmoidCrossEntropyLossLayer>("SigmoidCrossEntropyLoss");
}

}  // namespace hearth::caffe
