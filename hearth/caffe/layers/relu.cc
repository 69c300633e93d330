// ReLU and PReLU: f(x) = x above zero, slope * x below.
#include "hearth/base/error.h"
#include "hearth/caffe/kernels/vector_math.h"
#include "hearth/caffe/layers/neuron.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"
#include "hearth/caffe/tensor/filler.h"

namespace hearth::caffe {
namespace {

class ReluLayer : public NeuronLayer {
 public:
  ReluLayer(const LayerParameter& param, const NetContext& context)
      : NeuronLayer(param, context), slope_(param.relu_param().negative_slope()) {}

  LayerTraits traits() const override {
    LayerTraits traits = NeuronLayer::traits();
    traits.gated_by_sign = slope_ == 0;
    return traits;
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    // If the pooling layer above has already applied the ReLU's gradient (MoveReluGates), this
    // layer runs in place, and the bottom's diff is complete.
    if (!gated_by_reader()) NeuronLayer::Backward(top, propagate_down, bottom);
  }

 protected:
  void Apply(const Tensor& x, Tensor& y) override {
    RectifierOf(x.data_ptr(), slope_, y.data_ptr(), y.numel());
  }
  void Gradient(const Tensor& dy, const Tensor& x, const Tensor& y, Tensor& dx) override {
    const Tensor& sign = GradientNeedsInput() ? x : y;
    RectifierGradient(sign.data_ptr(), dy.data_ptr(), slope_, dx.data_ptr(), dx.numel());
  }
  void ApplyOnDevice(const Tensor& x, Tensor& y) override { device::leaky_relu_out(y, x, slope_); }
  void GradientOnDevice(const Tensor& dy, const Tensor& x, const Tensor& y, Tensor& dx) override {
    device::leaky_relu_backward_out(dx, dy, GradientNeedsInput() ? x : y, slope_);
  }
  // The output shows the input's sign, unless the slope is negative.
  bool GradientNeedsInput() const override { return slope_ < 0; }

 private:
  const float slope_;
};

// A ReLU with a learned slope: one per channel, or one for all. y = x above zero, else slope_c * x
// (He et al. 2015). dslope_c += the sum of dy * x over the values at or below zero of channel c.
class PReluLayer : public NeuronLayer {
 public:
  using NeuronLayer::NeuronLayer;

  LayerTraits traits() const override { return {.allows_in_place = true}; }

  void SetUp(const Blobs& bottom, const Blobs& top) override {
    const PReLUParameter& param = param_.prelu_param();
    Require(bottom[0]->num_axes() >= 2, ErrorCode::kInvalidArgument,
            "PReLU takes a bottom of 2 or more axes, not one of shape {}",
            bottom[0]->ShapeString());
    shared_ = param.channel_shared();
    FillerParameter filler = param.filler();
    // Caffe's default, from the paper that introduced PReLU (He et al., 2015).
    if (!param.has_filler()) filler.set_value(0.25f);
    const Shape shape = shared_ ? Shape{} : Shape{bottom[0]->shape(1)};
    blobs_ = {FilledBlob(shape, filler, *context().random)};
  }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    NeuronLayer::Reshape(bottom, top);
    channels_ = bottom[0]->shape(1);
    inner_ = bottom[0]->count(2);
    Require(shared_ || channels_ == blobs_[0]->count(), ErrorCode::kInvalidArgument,
            "PReLU was created for {} channels, but the bottom has {}", blobs_[0]->count(),
            channels_);
  }

 protected:
  void Apply(const Tensor& x, Tensor& y) override {
    const float* slopes = blobs_[0]->data_ptr();
    ForEachPlane(x.numel(),
                 [&, from = x.data_ptr(), to = y.data_ptr()](int64_t begin, int64_t channel) {
                   const float slope = slopes[channel];
                   for (int64_t i = begin; i < begin + inner_; ++i) {
                     to[i] = from[i] > 0 ? from[i] : slope * from[i];
                   }
                 });
  }

  void Gradient(const Tensor& dy, const Tensor& x, const Tensor&, Tensor& dx) override {
    const float* slopes = blobs_[0]->data_ptr();
    float* slope_diffs = blobs_[0]->diff_ptr();
    const bool wants_slope = param_propagate_down(0);
    ForEachPlane(x.numel(), [&, g = dy.data_ptr(), v = x.data_ptr(), to = dx.data_ptr()](
                                int64_t begin, int64_t channel) {
      const float slope = slopes[channel];
      float sum = 0;
      for (int64_t i = begin; i < begin + inner_; ++i) {
        if (v[i] <= 0) sum += g[i] * v[i];
        to[i] = v[i] > 0 ? g[i] : slope * g[i];
      }
      if (wants_slope) slope_diffs[channel] += sum;
    });
  }

  void ApplyOnDevice(const Tensor& x, Tensor& y) override {
    y.copy_(device::where(x > 0, x, Slopes(x) * x));
  }
  void GradientOnDevice(const Tensor& dy, const Tensor& x, const Tensor& y, Tensor& dx) override {
    const Tensor above = x > 0;
    if (param_propagate_down(0)) {
      std::vector<int64_t> axes;  // all axes but the channels; all axes if the slope is shared
      for (int64_t axis = 0; axis < x.dim(); ++axis) {
        if (shared_ || axis != 1) axes.push_back(axis);
      }
      const Tensor products = (dy * x).masked_fill_(above, 0);
      blobs_[0]->device_diff().add_(products.sum(axes));
    }
    dx.copy_(device::where(above, dy, Slopes(x) * dy));
  }

 private:
  Tensor Slopes(const Tensor& x) {
    if (shared_) return blobs_[0]->device_data();
    std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
    shape[1] = channels_;
    return blobs_[0]->device_data().view(shape);
  }

  template <typename Function>
  void ForEachPlane(int64_t count, Function f) {
    for (int64_t begin = 0, plane = 0; begin < count; begin += inner_, ++plane) {
      f(begin, shared_ ? 0 : plane % channels_);
    }
  }

  bool shared_ = false;
  int64_t channels_ = 0, inner_ = 0;
};

}  // namespace

void RegisterRelu(LayerRegistry& registry) {
  registry.Add<ReluLayer>("ReLU");
  registry.Add<PReluLayer>("PReLU");
}

}  // namespace hearth::caffe
