// Pooling: the largest value, the average or a random one of each window.
#include <algorithm>
#include <optional>

#include "hearth/base/error.h"
#include "hearth/caffe/kernels/channels_last_pooling.h"
#include "hearth/caffe/kernels/device_pooling.h"
#include "hearth/caffe/kernels/plane_pooling.h"
#include "hearth/caffe/kernels/vector_math.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/parallel.h"

namespace hearth::caffe {
namespace {

class PoolingLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    const bool max = pool() == PoolingParameter::MAX, one_top = param_.top_size() == 1;
    // Stochastic pooling and the mask, a second top, are implemented only by loops over planes.
    const bool any = pool() != PoolingParameter::STOCHASTIC && param_.top_size() <= 1;
    return {.arity = {1, 1, 1, max ? 2 : 1},
            .channels_last = any ? ChannelsLast::kAny : ChannelsLast::kNo,
            .can_gate_bottom = max && one_top};
  }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    Require(bottom[0]->num_axes() == 4, ErrorCode::kInvalidArgument,
            "pooling takes a bottom of 4 axes, not one of shape {}", bottom[0]->ShapeString());
    plane_ = {PoolingAxis::Read(param_.pooling_param(), 'h', bottom[0]->shape(2)),
              PoolingAxis::Read(param_.pooling_param(), 'w', bottom[0]->shape(3))};
    const auto& [rows, columns] = plane_;
    for (Blob* blob : top) {
      blob->Reshape({bottom[0]->shape(0), bottom[0]->shape(1), rows.outputs, columns.outputs});
    }
    planes_ = bottom[0]->count(0, 2);
    channels_last_ = {rows, columns, bottom[0]->shape(1)};
    // The loops read and write the same layout. If the layouts differ, the top is converted,
    // because it is usually smaller than the bottom.
    if (top[0]->layout() != bottom[0]->layout()) {
      converted_top_.ReshapeLike(*top[0]);
      if (converted_top_.layout() != bottom[0]->layout())
        converted_top_.set_layout(bottom[0]->layout());
    }
    if (on_device()) device_ = DevicePooling::Of(pool(), rows, columns);
    if (!device_ && pool() != PoolingParameter::AVE) argmax_.resize(top[0]->count());
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    if (device_) {
      device_->Forward(bottom[0]->device_data(), top[0]->device_data(), argmax_on_device_);
      if (top.size() > 1) top[1]->device_data().copy_(argmax_on_device_);
      return;
    }
    const bool mixed = top[0]->layout() != bottom[0]->layout();
    Blob& out = mixed ? converted_top_ : *top[0];
    const float* x = bottom[0]->data_ptr();
    float* mask = top.size() > 1 ? top[1]->data_ptr() : nullptr;
    if (pool() == PoolingParameter::STOCHASTIC) {
      ForwardStochastic(x, out.data_ptr());
    } else if (bottom[0]->layout() == Layout::kChannelsLast) {
      ForwardEach(channels_last_, bottom[0]->shape(0), x, out.data_ptr(), mask);
    } else {
      ForwardEach(plane_, planes_, x, out.data_ptr(), mask);
    }
    if (mixed) top[0]->data().copy_(converted_top_.data());
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    if (!propagate_down[0]) return;
    Require(pool() != PoolingParameter::STOCHASTIC || context().phase == TRAIN,
            ErrorCode::kInvalidArgument, "STOCHASTIC pooling has a gradient in phase TRAIN only");
    if (device_) {
      device_->Backward(top[0]->device_diff(), bottom[0]->device_data(), argmax_on_device_,
                        bottom[0]->device_diff());
      return;
    }
    if (gates_bottom()) {  // the ReLU below leaves its gradient to this layer (MoveReluGates)
      float* dy = top[0]->diff_ptr();
      // The top contains copies of the ReLU's outputs, so it shows where the ReLU passes the
      // gradient.
      RectifierGradient(top[0]->data_ptr(), dy, 0, dy, top[0]->count());
    }
    const bool mixed = top[0]->layout() != bottom[0]->layout();
    if (mixed) converted_top_.diff().copy_(top[0]->diff());
    const float* dy = (mixed ? converted_top_ : *top[0]).diff_ptr();
    if (bottom[0]->layout() == Layout::kChannelsLast) {
      BackwardEach(channels_last_, bottom[0]->shape(0), dy, bottom[0]->diff_ptr());
    } else {
      BackwardEach(plane_, planes_, dy, bottom[0]->diff_ptr());
    }
  }

 private:
  // Calls f(index of the first input, index of the first output) for each of `count` images or
  // planes.
  template <typename Pooling, typename Function>
  static void ForEach(const Pooling& pooling, int64_t count, Function f) {
    const int64_t in = pooling.inputs(), out = pooling.outputs();
    ParallelFor(0, count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) f(i * in, i * out);
    });
  }

  template <typename Pooling>
  void ForwardEach(const Pooling& pooling, int64_t count, const float* x, float* y, float* mask) {
    ForEach(pooling, count, [&](int64_t in, int64_t out) {
      if (pool() == PoolingParameter::AVE) return pooling.Average(x + in, y + out);
      pooling.Max(x + in, y + out, &argmax_[out]);
      if (mask != nullptr) std::copy_n(&argmax_[out], pooling.outputs(), mask + out);
    });
  }

  template <typename Pooling>
  void BackwardEach(const Pooling& pooling, int64_t count, const float* dy, float* dx) {
    ForEach(pooling, count, [&](int64_t in, int64_t out) {
      if (pool() == PoolingParameter::AVE) return pooling.AverageGradient(dy + out, dx + in);
      pooling.GradientAt(dy + out, &argmax_[out], dx + in);
    });
  }

  void ForwardStochastic(const float* x, float* y) {
    const bool draws = context().phase == TRAIN;
    if (draws) DrawThresholds();
    ForEach(plane_, planes_, [&](int64_t in, int64_t out) {
      if (!draws) return plane_.Expected(x + in, y + out);
      plane_.Draw(x + in, &thresholds_[out], y + out, &argmax_[out]);
    });
  }

  PoolingParameter::PoolMethod pool() const { return param_.pooling_param().pool(); }

  void DrawThresholds() {
    thresholds_.resize(argmax_.size());
    for (float& threshold : thresholds_) threshold = context().random->Uniform(0, 1);
  }

  PlanePooling plane_;
  ChannelsLastPooling channels_last_;
  Blob converted_top_;  // the top in the bottom's layout, if the layouts differ
  int64_t planes_ = 0;
  std::vector<int32_t> argmax_;  // MAX and STOCHASTIC: the input index of every output
  std::vector<float> thresholds_;
  std::optional<DevicePooling> device_;  // set if the device computes this pooling
  Tensor argmax_on_device_;              // argmax_ for device_
};

}  // namespace

void RegisterPooling(LayerRegistry& registry) { registry.Add<PoolingLayer>("Pooling"); }

}  // namespace hearth::caffe
