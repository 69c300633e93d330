// ArgMax: the top_k largest values of each row, or their positions. Among equal values the larger
// position comes first, as in Caffe.
#include <algorithm>
#include <functional>

#include "hearth/base/error.h"
#include "hearth/caffe/kernels/device_labels.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"

namespace hearth::caffe {
namespace {

class ArgMaxLayer : public Layer {
 public:
  ArgMaxLayer(const LayerParameter& param, const NetContext& context)
      : Layer(param, context),
        along_axis_(param.argmax_param().has_axis()),
        wants_values_(param.argmax_param().out_max_val()),
        top_k_(param.argmax_param().top_k()) {}

  LayerTraits traits() const override { return {.never_forced = {0}}; }

  // If `axis` is set, the top contains either positions or values (out_max_val). Otherwise each row
  // is searched as a whole, and the top contains positions, followed by the values if out_max_val
  // is set.
  void Reshape(const Blobs& bottom, const Blobs& top) override {
    const Blob& x = *bottom[0];
    Shape shape;
    if (along_axis_) {
      layout_ = ClassLayout::Of(x, param_.argmax_param().axis());
      shape = x.shape();
      shape[x.CanonicalAxis(param_.argmax_param().axis())] = top_k_;
    } else {
      layout_ = {x.shape(0), x.count(1), 1};
      // As in Caffe, the top has as many axes as the bottom, but at least three.
      shape.assign(std::max<int64_t>(x.num_axes(), 3), 1);
      shape[0] = x.shape(0);
      shape[1] = wants_values_ ? 2 : 1;
      shape[2] = top_k_;
    }
    Require(top_k_ > 0 && top_k_ <= layout_.classes, ErrorCode::kInvalidArgument,
            "top_k {} must be from 1 to {}, the number of values to choose from", top_k_,
            layout_.classes);
    top[0]->Reshape(shape);
    ranked_.resize(layout_.classes);
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    if (on_device()) return ForwardOnDevice(*bottom[0], *top[0]);
    const float* x = bottom[0]->data_ptr();
    float* y = top[0]->data_ptr();
    for (int64_t outer = 0; outer < layout_.outer; ++outer) {
      for (int64_t inner = 0; inner < layout_.inner; ++inner) {
        Rank(x + outer * layout_.classes * layout_.inner + inner);
        // Along an axis, consecutive outputs are `inner` values apart; for whole rows, they are
        // adjacent.
        if (along_axis_) {
          Write(wants_values_, y + outer * top_k_ * layout_.inner + inner);
        } else {
          Write(false, y);
          y += top_k_;
          if (!wants_values_) continue;
          Write(true, y);
          y += top_k_;
        }
      }
    }
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    Require(!propagate_down[0], ErrorCode::kInvalidArgument,
            "ArgMax has no gradient; remove the loss after it");
  }

 private:
  void ForwardOnDevice(Blob& bottom, Blob& top) const {
    // The classes are flipped, so that the stable sort puts the larger of two tied positions first.
    const auto [sorted, from_behind] = ClassView(bottom.device_data(), layout_)
                                           .flip(1)
                                           .sort(/*stable=*/true, /*dim=*/1, /*descending=*/true);
    const Tensor values = sorted.narrow(1, 0, top_k_);
    const Tensor positions = layout_.classes - 1 - from_behind.narrow(1, 0, top_k_);
    if (along_axis_) {
      const Tensor to = top.device_data().view({layout_.outer, top_k_, layout_.inner});
      to.copy_(wants_values_ ? values : positions);
      return;
    }
    const Tensor to = top.device_data().view({layout_.outer, -1, top_k_});
    to.select(1, 0).copy_(positions.squeeze(2));
    if (wants_values_) to.select(1, 1).copy_(values.squeeze(2));
  }

  // Pairs compare by value, then by position, so the larger of two tied positions comes first.
  void Rank(const float* row) {
    for (int64_t c = 0; c < layout_.classes; ++c) ranked_[c] = {row[c * layout_.inner], c};
    std::partial_sort(ranked_.begin(), ranked_.begin() + top_k_, ranked_.end(),
                      std::greater<std::pair<float, int64_t>>());
  }

  void Write(bool values, float* to) const {
    for (int64_t k = 0; k < top_k_; ++k) {
      to[k * layout_.inner] = values ? ranked_[k].first : static_cast<float>(ranked_[k].second);
    }
  }

  const bool along_axis_, wants_values_;
  const int64_t top_k_;
  ClassLayout layout_;
  std::vector<std::pair<float, int64_t>> ranked_;  // values of one row and their positions
};

}  // namespace

void RegisterArgMax(LayerRegistry& registry) { registry.Add<ArgMaxLayer>("ArgMax"); }

}  // namespace hearth::caffe
