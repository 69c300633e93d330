// SoftmaxWithLoss: the mean of -log(softmax of the true class).
#include <cfloat>
#include <cmath>

#include "hearth/base/error.h"
#include "hearth/caffe/kernels/device_labels.h"
#include "hearth/caffe/kernels/loss_normalizer.h"
#include "hearth/caffe/kernels/vector_math.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"
#include "hearth/caffe/tensor/parallel.h"

namespace hearth::caffe {
namespace {

// With p = softmax(x) and D the normalizer's divisor:
//   loss = -1 / D * sum of log(p[i, label_i])
//   dx[i, c] = loss weight / D * (p[i, c] - (c == label_i ? 1 : 0))
// As in Caffe, the loss clamps p to at least FLT_MIN, so that a row's loss is at most 87.34; dx
// uses the unclamped p.
class SoftmaxLossLayer : public Layer {
 public:
  SoftmaxLossLayer(const LayerParameter& param, const NetContext& context)
      : Layer(param, context),
        normalizer_(LossNormalizer::Read(param.loss_param(), LossParameter::VALID)),
        ignored_(IgnoredLabel(param.loss_param())) {}

  LayerTraits traits() const override {
    return {.arity = {2, 2, 1, 2}, .is_loss = true, .automatic_tops = true, .never_forced = {1}};
  }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    axis_ = bottom[0]->CanonicalAxis(param_.softmax_param().axis());
    layout_ = ClassLayout::Of(*bottom[0], axis_);
    layout_.RequireLabels(*bottom[1]);
    top[0]->Reshape({});
    probabilities_.ReshapeLike(*bottom[0]);
    if (top.size() > 1) top[1]->ReshapeLike(*bottom[0]);
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    if (on_device()) return ForwardOnDevice(bottom, top);
    Softmax({layout_.outer, layout_.classes, layout_.inner}, bottom[0]->data_ptr(),
            probabilities_.data_ptr());
    const float* p = probabilities_.data_ptr();
    const float* labels = bottom[1]->data_ptr();
    // The sum is double, because a minibatch may have millions of labels, as for segmentation.
    double loss = 0;
    int64_t valid = 0;
    for (int64_t i = 0; i < layout_.outer * layout_.inner; ++i) {
      const auto label = ClassLabel(labels, i, layout_.classes, ignored_);
      if (!label) continue;
      loss -= std::log(std::max(p[layout_.Index(i, *label)], FLT_MIN));
      ++valid;
    }
    divisor_ = normalizer_.Divisor(layout_.outer, layout_.inner, valid);
    *top[0]->data_ptr() = static_cast<float>(loss) / divisor_;
    if (top.size() > 1) top[1]->data().copy_(probabilities_.data());
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    Require(!propagate_down[1], ErrorCode::kInvalidArgument,
            "SoftmaxWithLoss has no gradient for its labels");
    if (!propagate_down[0]) return;
    if (on_device()) return BackwardOnDevice(top, bottom);
    const float scale = *top[0]->diff_ptr() / divisor_;
    const float* p = probabilities_.data_ptr();
    const float* labels = bottom[1]->data_ptr();
    float* dx = bottom[0]->diff_ptr();
    const int64_t row = layout_.classes * layout_.inner;
    ParallelFor(0, layout_.outer, 16384 / row + 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * row; i < end * row; ++i) dx[i] = scale * p[i];
      for (int64_t i = begin * layout_.inner; i < end * layout_.inner; ++i) {
        // Forward has checked that the label is a class.
        const auto label = static_cast<int64_t>(labels[i]);
        if (label != ignored_) {
          dx[layout_.Index(i, label)] -= scale;
        } else {
          for (int64_t c = 0; c < layout_.classes; ++c) dx[layout_.Index(i, c)] = 0;
        }
      }
    });
  }

 private:
  void ForwardOnDevice(const Blobs& bottom, const Blobs& top) {
    labels_ = DeviceLabels::Of(*bottom[1], layout_, ignored_);
    divisor_ = normalizer_.Divisor(layout_.outer, layout_.inner, labels_.valid);
    Tensor& p = probabilities_.device_data();
    device::softmax_out(p, bottom[0]->device_data(), axis_);
    const Tensor chosen = ClassView(p, layout_).gather(1, labels_.index);
    const Tensor losses = chosen.clamp_min(FLT_MIN).log_().masked_fill_(labels_.ignored, 0);
    top[0]->device_data().copy_(losses.sum() / -divisor_);
    if (top.size() > 1) top[1]->device_data().copy_(p);
  }

  void BackwardOnDevice(const Blobs& top, const Blobs& bottom) {
    const float scale = *top[0]->read_diff() / divisor_;
    const Tensor& index = labels_.index;
    Tensor& dx = bottom[0]->device_diff();
    device::mul_out(dx, probabilities_.device_data(), scale);
    Tensor rows = ClassView(dx, layout_);
    rows.scatter_add_(1, index, device::full(index.sizes(), -scale, dx));
    if (ignored_) rows.masked_fill_(labels_.ignored, 0);
  }

  const LossNormalizer normalizer_;
  const std::optional<int64_t> ignored_;
  ClassLayout layout_;
  int64_t axis_ = 1;
  float divisor_ = 1;
  Blob probabilities_;
  DeviceLabels labels_;  // of the last Forward on a device
};

}  // namespace

void RegisterSoftmaxLoss(LayerRegistry& registry) {
  registry.Add<SoftmaxLossLayer>("SoftmaxWithLoss");
}

}  // namespace hearth::caffe
