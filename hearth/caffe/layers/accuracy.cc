// Accuracy: the fraction of rows whose true class is among the top_k best scores.
#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/caffe/kernels/device_labels.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"

namespace hearth::caffe {
namespace {

class AccuracyLayer : public Layer {
 public:
  AccuracyLayer(const LayerParameter& param, const NetContext& context)
      : Layer(param, context),
        top_k_(param.accuracy_param().top_k()),
        ignored_(IgnoredLabel(param.accuracy_param())) {}

  // Neither bottom has a gradient: force_backward skips both, whereas Caffe aborts.
  LayerTraits traits() const override { return {.arity = {2, 2, 1, 2}, .never_forced = {0, 1}}; }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    layout_ = ClassLayout::Of(*bottom[0], param_.accuracy_param().axis());
    layout_.RequireLabels(*bottom[1]);
    Require(top_k_ > 0 && top_k_ <= layout_.classes, ErrorCode::kInvalidArgument,
            "top_k {} must be from 1 to the number of classes, {}", top_k_, layout_.classes);
    top[0]->Reshape({});
    if (top.size() > 1) top[1]->Reshape({layout_.classes});
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    if (on_device()) return ForwardOnDevice(bottom, top);
    const float* scores = bottom[0]->data_ptr();
    const float* labels = bottom[1]->data_ptr();
    // Counts are integers, because a float cannot count beyond 2^24.
    std::vector<int64_t> seen(layout_.classes), right(layout_.classes);
    for (int64_t i = 0; i < layout_.outer * layout_.inner; ++i) {
      const auto label = ClassLabel(labels, i, layout_.classes, ignored_);
      if (!label) continue;
      ++seen[*label];
      right[*label] += IsRight(scores, i, *label);
    }
    int64_t all_seen = 0, all_right = 0;
    for (int64_t c = 0; c < layout_.classes; ++c) {
      all_seen += seen[c];
      all_right += right[c];
      // As in Caffe, a class without rows has accuracy 0.
      if (top.size() > 1) top[1]->data_ptr()[c] = Part(right[c], seen[c]);
    }
    *top[0]->data_ptr() = Part(all_right, all_seen);
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    Require(!propagate_down[0] && !propagate_down[1], ErrorCode::kInvalidArgument,
            "Accuracy has no gradient; remove the loss after it");
  }

 private:
  void ForwardOnDevice(const Blobs& bottom, const Blobs& top) const {
    const DeviceLabels labels = DeviceLabels::Of(*bottom[1], layout_, ignored_);
    const Tensor scores = ClassView(bottom[0]->device_data(), layout_);
    // Shape outer x 1 x inner: the number of classes, including the true one, whose score is at
    // least the true one's.
    const Tensor not_worse = (scores >= scores.gather(1, labels.index)).sum(1, true);
    const Tensor counted = labels.ignored.logical_not().to(HEARTH_FLOAT);
    const Tensor right = (not_worse <= top_k_).to(HEARTH_FLOAT).mul_(counted);
    const auto seen = static_cast<float>(std::max<int64_t>(labels.valid, 1));
    top[0]->device_data().copy_(right.sum() / seen);
    if (top.size() < 2) return;
    // Two histograms over the classes: all rows, and the correctly classified rows. An ignored row
    // has class index 0, and adds 0 to that class.
    const Tensor classes = labels.index.flatten();
    const Tensor none = device::full({layout_.classes}, 0, scores);
    const Tensor all = none.scatter_add(0, classes, counted.flatten());
    top[1]->device_data().copy_(none.scatter_add(0, classes, right.flatten()) / all.clamp_min(1));
  }

  static float Part(int64_t right, int64_t seen) {
    return seen == 0 ? 0.f : static_cast<float>(right) / static_cast<float>(seen);
  }

  // As in Caffe, a class with the same score as the true one ranks above it.
  bool IsRight(const float* scores, int64_t i, int64_t label) const {
    const float* row =
        scores + i / layout_.inner * layout_.classes * layout_.inner + i % layout_.inner;
    const float own = row[label * layout_.inner];
    int64_t not_worse = 0;
    for (int64_t c = 0; c < layout_.classes; ++c) not_worse += row[c * layout_.inner] >= own;
    return not_worse <= top_k_;
  }

  const int64_t top_k_;
  const std::optional<int64_t> ignored_;
  ClassLayout layout_;
};

}  // namespace

void RegisterAccuracy(LayerRegistry& registry) { registry.Add<AccuracyLayer>("Accuracy"); }

}  // namespace hearth::caffe
