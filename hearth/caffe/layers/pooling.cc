// Pooling: the largest value, the average or a random one of each window.
#include <algorithm>
#include <optional>

#include "hearth/base/error.h"
#include "hearth/caffe/kernels/channels_last_pooling.h"
#include "hearth/caffe/kernels/device_pooling.h"
#include "hearth/caffe/kernels/plane_pooling.h"
#include "hearth/caffe/kernels/vector_math.h"
#include "hearth/caffe/layers/all_layers.h"
#include "hearth/caffe/tensor/parallel.h"

namespace hearth::caffe {
namespace {

class PoolingLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    const bool max = pool() == PoolingParameter::MAX, one_top = param_.top_size() == 1;
    // With a mask as second top, and for random choices, there are only loops over planes.
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
    // The loops read and write one layout; the top is converted, which is smaller as a rule.
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
    if (bottom[0]->layout() == Layout::kChannelsLast) {
      ForwardImages(bottom[0]->shape(0), bottom[0]->data_ptr(), out.data_ptr());
    } else {
      ForwardPlanes(bottom[0]->data_ptr(), out.data_ptr(),
                    top.size() > 1 ? top[1]->data_ptr() : nullptr);
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
    if (gates_bottom()) {  // the ReLU below left its gradient to this layer (MoveReluGates)
      float* dy = top[0]->diff_ptr();
      // A pooled value is positive where the one it repeats is, so the top shows the ReLU's sign.
      RectifierGradient(top[0]->data_ptr(), dy, 0, dy, top[0]->count());
    }
    const bool mixed = top[0]->layout() != bottom[0]->layout();
    if (mixed) converted_top_.diff().copy_(top[0]->diff());
    const float* dy = (mixed ? converted_top_ : *top[0]).diff_ptr();
    if (bottom[0]->layout() == Layout::kChannelsLast) {
      BackwardImages(bottom[0]->shape(0), dy, bottom[0]->diff_ptr());
    } else {
      BackwardPlanes(dy, bottom[0]->diff_ptr());
    }
  }

 private:
  // Images are pooled one by one in parallel if channels are last, else planes.
  void ForwardImages(int64_t images, const float* x, float* y) {
    const int64_t in = plane_.inputs() * channels_last_.channels;
    const int64_t out = plane_.outputs() * channels_last_.channels;
    ForEach(images, [&](int64_t n) {
      if (pool() == PoolingParameter::MAX) {
        channels_last_.Max(x + n * in, y + n * out, &argmax_[n * out]);
      } else {
        channels_last_.Average(x + n * in, y + n * out);
      }
    });
  }

  void BackwardImages(int64_t images, const float* dy, float* dx) {
    const int64_t in = plane_.inputs() * channels_last_.channels;
    const int64_t out = plane_.outputs() * channels_last_.channels;
    ForEach(images, [&](int64_t n) {
      if (pool() == PoolingParameter::MAX) {
        channels_last_.MaxGradient(dy + n * out, &argmax_[n * out], dx + n * in);
      } else {
        channels_last_.AverageGradient(dy + n * out, dx + n * in);
      }
    });
  }

  void ForwardPlanes(const float* x, float* y, float* mask) {
    const bool draws = pool() == PoolingParameter::STOCHASTIC && context().phase == TRAIN;
    if (draws) DrawThresholds();
    const int64_t in = plane_.inputs(), out = plane_.outputs();
    ForEach(planes_, [&](int64_t p) {
      if (pool() == PoolingParameter::MAX) {
        plane_.Max(x + p * in, y + p * out, &argmax_[p * out]);
        if (mask != nullptr) std::copy_n(&argmax_[p * out], out, mask + p * out);
      } else if (pool() == PoolingParameter::AVE) {
        plane_.Average(x + p * in, y + p * out);
      } else if (draws) {
        plane_.Draw(x + p * in, &thresholds_[p * out], y + p * out, &argmax_[p * out]);
      } else {
        plane_.Expected(x + p * in, y + p * out);
      }
    });
  }

  void BackwardPlanes(const float* dy, float* dx) {
    const int64_t in = plane_.inputs(), out = plane_.outputs();
    ForEach(planes_, [&](int64_t p) {
      if (pool() == PoolingParameter::AVE) {
        plane_.AverageGradient(dy + p * out, dx + p * in);
      } else {
        plane_.GradientAt(dy + p * out, &argmax_[p * out], dx + p * in);
      }
    });
  }

  template <typename Function>
  static void ForEach(int64_t count, Function f) {
    ParallelFor(0, count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) f(i);
    });
  }

  PoolingParameter::PoolMethod pool() const { return param_.pooling_param().pool(); }

  void DrawThresholds() {
    thresholds_.resize(argmax_.size());
    for (float& threshold : thresholds_) threshold = context().random->Uniform(0, 1);
  }

  PlanePooling plane_;
  ChannelsLastPooling channels_last_;
  Blob converted_top_;  // the top in the bottom's layout, if they differ
  int64_t planes_ = 0;
  std::vector<int32_t> argmax_;  // MAX and STOCHASTIC: the input index of every output
  std::vector<float> thresholds_;
  std::optional<DevicePooling> device_;  // on a device, if it applies
  Tensor argmax_on_device_;              // likewise
};

}  // namespace

void RegisterPooling(LayerRegistry& registry) { registry.Add<PoolingLayer>("Pooling"); }

}  // namespace hearth::caffe
