// Scale and Bias: multiply the bottom by (or add) a smaller blob, which is learned or a second
// bottom and is broadcast over the bottom's other axes.
#include "hearth/base/error.h"
#include "hearth/caffe/net/join_normalization.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"
#include "hearth/caffe/tensor/filler.h"
#include "hearth/caffe/tensor/parallel.h"

namespace hearth::caffe {
namespace {

// The bottom's shape as outer x size x inner, where `size` is the count of the smaller blob.
struct Broadcast {
  int64_t outer = 1, size = 1, inner = 1;

  // Returns the shape of the smaller blob: all axes of the bottom from `axis` on if `num_axes` is
  // -1, or a single value if it is 0.
  static Shape OperandShape(const Blob& bottom, int64_t axis, int64_t num_axes) {
    if (num_axes == 0) return {};
    const int64_t begin = bottom.CanonicalAxis(axis);
    const int64_t end = num_axes == -1 ? bottom.num_axes() : begin + num_axes;
    Require(num_axes >= -1 && end <= bottom.num_axes(), ErrorCode::kInvalidArgument,
            "axis {} and num_axes {} reach beyond a bottom of shape {}", axis, num_axes,
            bottom.ShapeString());
    return {bottom.shape().begin() + begin, bottom.shape().begin() + end};
  }

  static Broadcast Of(const Blob& bottom, const Blob& operand, int64_t axis) {
    // A single value applies to the whole bottom, whatever the axis.
    const int64_t begin = operand.num_axes() == 0 ? 0 : bottom.CanonicalAxis(axis);
    const int64_t end = begin + operand.num_axes();
    const bool fits =
        end <= bottom.num_axes() &&
        std::equal(operand.shape().begin(), operand.shape().end(), bottom.shape().begin() + begin);
    Require(fits, ErrorCode::kInvalidArgument,
            "a blob of shape {} does not match a bottom of shape {} from axis {} on",
            operand.ShapeString(), bottom.ShapeString(), axis);
    return {bottom.count(0, begin), operand.count(), bottom.count(end)};
  }

  // Calls f(begin, end, s) for every run [begin, end) of indices that share value s of the smaller
  // blob.
  template <typename Function>
  void ForEachRun(Function f) const {
    ParallelFor(0, outer * size, 1 + 16384 / std::max<int64_t>(1, inner),
                [&](int64_t begin, int64_t end) {
                  for (int64_t r = begin; r < end; ++r) f(r * inner, (r + 1) * inner, r % size);
                });
  }
};

// sums[s] += the sum of f(i) over all positions i that share value s of the smaller blob.
template <typename Function>
void AddSums(const Broadcast& shape, float* sums, Function f) {
  ParallelFor(0, shape.size, 1, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      double sum = 0;
      for (int64_t o = 0; o < shape.outer; ++o) {
        const int64_t first = (o * shape.size + s) * shape.inner;
        for (int64_t i = first; i < first + shape.inner; ++i) sum += f(i);
      }
      sums[s] += static_cast<float>(sum);
    }
  });
}

// Base of both layers. Finds the smaller blob, which is a second bottom or a parameter, and sums
// its gradient.
class BroadcastLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.arity = {1, 2, 1, 1}, .allows_in_place = true}; }

 protected:
  void MakeOperand(const Blob& bottom, int64_t num_axes, const FillerParameter& filler) {
    const Shape shape = Broadcast::OperandShape(bottom, operand_axis_, num_axes);
    blobs_.push_back(FilledBlob(shape, filler, *context().random));
  }

  void ReshapeTop(const Blobs& bottom, const Blobs& top) {
    if (top[0] != bottom[0]) top[0]->ReshapeLike(*bottom[0]);
    shape_ = Broadcast::Of(*bottom[0], Operand(bottom), operand_axis_);
  }

  // Whole() views a tensor of the bottom's shape as outer x size x inner; Part() views the smaller
  // one so that it broadcasts to that shape.
  Tensor Whole(const Tensor& tensor) const {
    return tensor.view({shape_.outer, shape_.size, shape_.inner});
  }
  static Tensor Part(const Tensor& tensor) { return tensor.view({-1, 1}); }

  // Sums the products per value of the smaller blob. Adds the sums to a parameter's diff, or
  // overwrites a bottom's diff with them.
  static void AddSumsOnDevice(const Tensor& products, bool overwrite, Blob& operand) {
    const Tensor sums = products.sum(Shape{0, 2});
    Tensor diff = operand.device_diff().view({-1});
    overwrite ? diff.copy_(sums) : diff.add_(sums);
  }

  Blob& Operand(const Blobs& bottom) { return bottom.size() > 1 ? *bottom[1] : *blobs_[0]; }

  void AddBias(const float* x, const float* bias, float* y) const {
    shape_.ForEachRun([=](int64_t begin, int64_t end, int64_t s) {
      for (int64_t i = begin; i < end; ++i) y[i] = x[i] + bias[s];
    });
  }

  // Adds the sums to a parameter's diff, or overwrites a bottom's diff with them.
  template <typename Function>
  void SumInto(const Blobs& bottom, Function f) {
    Blob& operand = Operand(bottom);
    // AddSums adds, so a bottom's old diff is cleared first.
    if (bottom.size() > 1) operand.diff().zero_();
    AddSums(shape_, operand.diff_ptr(), f);
  }

  int64_t operand_axis_ = 1;
  Broadcast shape_;
};

class BiasLayer : public BroadcastLayer {
 public:
  using BroadcastLayer::BroadcastLayer;

  void SetUp(const Blobs& bottom, const Blobs& top) override {
    const BiasParameter& param = param_.bias_param();
    operand_axis_ = param.axis();
    if (bottom.size() == 1) MakeOperand(*bottom[0], param.num_axes(), param.filler());
  }

  void Reshape(const Blobs& bottom, const Blobs& top) override { ReshapeTop(bottom, top); }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    if (on_device()) {
      Tensor y = Whole(top[0]->device_data());
      device::add_out(y, Whole(bottom[0]->device_data()), Part(Operand(bottom).device_data()));
      return;
    }
    AddBias(bottom[0]->data_ptr(), Operand(bottom).data_ptr(), top[0]->data_ptr());
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    if (on_device()) return BackwardOnDevice(top, propagate_down, bottom);
    const float* dy = top[0]->diff_ptr();
    if (bottom.size() > 1 ? propagate_down[1] : param_propagate_down(0)) {
      SumInto(bottom, [dy](int64_t i) { return dy[i]; });
    }
    if (propagate_down[0] && top[0] != bottom[0]) bottom[0]->diff().copy_(top[0]->diff());
  }

 private:
  void BackwardOnDevice(const Blobs& top, const std::vector<bool>& propagate_down,
                        const Blobs& bottom) {
    const bool is_bottom = bottom.size() > 1;
    const Tensor& dy = top[0]->device_diff();
    if (is_bottom ? propagate_down[1] : param_propagate_down(0)) {
      AddSumsOnDevice(Whole(dy), is_bottom, Operand(bottom));
    }
    if (propagate_down[0] && top[0] != bottom[0]) bottom[0]->device_diff().copy_(dy);
  }
};

// y = scale * x + bias; dx = dy * scale, dscale = the sum of dy * x and dbias = the sum of dy over
// the positions that share a value.
class ScaleLayer : public BroadcastLayer, public ScalesNormalized {
 public:
  using BroadcastLayer::BroadcastLayer;

  bool scales_channels(int64_t channels) const override {
    return has_bias() && blobs_.size() == 2 && operand_axis_ == 1 && param_propagate_down(0) &&
           param_propagate_down(1) && blobs_[0]->shape() == Shape{channels};
  }
  void set_normalization(Normalization* normalization) override { normalization_ = normalization; }

  void SetUp(const Blobs& bottom, const Blobs& top) override {
    const ScaleParameter& param = param_.scale_param();
    operand_axis_ = param.axis();
    if (bottom.size() == 1) {
      FillerParameter filler = param.filler();
      if (!param.has_filler()) filler.set_value(1);
      MakeOperand(*bottom[0], param.num_axes(), filler);
    }
    if (param.bias_term()) {
      const Shape& shape = Operand(bottom).shape();
      blobs_.push_back(FilledBlob(shape, param.bias_filler(), *context().random));
    }
  }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    ReshapeTop(bottom, top);
    if (top[0] == bottom[0]) input_.ReshapeLike(*bottom[0]);
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    if (on_device()) return ForwardOnDevice(bottom, top);
    if (top[0] == bottom[0]) input_.data().copy_(bottom[0]->data());
    const float* x = bottom[0]->data_ptr();
    const float* scale = Operand(bottom).data_ptr();
    float* y = top[0]->data_ptr();
    shape_.ForEachRun([=](int64_t begin, int64_t end, int64_t s) {
      for (int64_t i = begin; i < end; ++i) y[i] = x[i] * scale[s];
    });
    if (has_bias()) AddBias(y, blobs_.back()->data_ptr(), y);
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    if (on_device()) return BackwardOnDevice(top, propagate_down, bottom);
    const float* dy = top[0]->diff_ptr();
    // The bottom's gradient is computed last, because it overwrites dy if the layer runs in place.
    if (has_bias() && param_propagate_down(blobs_.size() - 1)) {
      AddSums(shape_, blobs_.back()->diff_ptr(), [dy](int64_t i) { return dy[i]; });
    }
    if (bottom.size() > 1 ? propagate_down[1] : param_propagate_down(0)) {
      const float* x = (top[0] == bottom[0] ? input_ : *bottom[0]).data_ptr();
      SumInto(bottom, [dy, x](int64_t i) { return dy[i] * x[i]; });
    }
    if (propagate_down[0]) {
      const float* scale = Operand(bottom).data_ptr();
      float* dx = bottom[0]->diff_ptr();
      shape_.ForEachRun([=](int64_t begin, int64_t end, int64_t s) {
        for (int64_t i = begin; i < end; ++i) dx[i] = dy[i] * scale[s];
      });
    }
  }

 private:
  void ForwardOnDevice(const Blobs& bottom, const Blobs& top) {
    const Tensor& x = bottom[0]->device_data();
    // A joined BatchNorm already keeps a copy of these values.
    if (top[0] == bottom[0] && normalization_ == nullptr) input_.device_data().copy_(x);
    Tensor y = Whole(top[0]->device_data());
    if (has_bias()) {
      device::addcmul_out(y, Part(blobs_.back()->device_data()), Whole(x),
                          Part(Operand(bottom).device_data()));
    } else {
      device::mul_out(y, Whole(x), Part(Operand(bottom).device_data()));
    }
  }

  void BackwardOnDevice(const Blobs& top, const std::vector<bool>& propagate_down,
                        const Blobs& bottom) {
    const Tensor dy = Whole(top[0]->device_diff());
    if (normalization_ != nullptr) {
      // The BatchNorm writes the gradient of its bottom itself; the gradient of its top is never
      // computed.
      const Normalization::Gradients gradients = normalization_->BackwardScaled(
          top[0]->device_diff(), blobs_[0]->device_data().view({-1}));
      blobs_[0]->AddToDeviceDiff(gradients.scale);
      blobs_[1]->AddToDeviceDiff(gradients.bias);
      return;
    }
    if (has_bias() && param_propagate_down(blobs_.size() - 1)) {
      AddSumsOnDevice(dy, /*overwrite=*/false, *blobs_.back());
    }
    const bool is_bottom = bottom.size() > 1;
    if (is_bottom ? propagate_down[1] : param_propagate_down(0)) {
      Blob& x = top[0] == bottom[0] ? input_ : *bottom[0];
      AddSumsOnDevice(dy * Whole(x.device_data()), is_bottom, Operand(bottom));
    }
    if (propagate_down[0]) {
      Tensor dx = Whole(bottom[0]->device_diff());
      device::mul_out(dx, dy, Part(Operand(bottom).device_data()));
    }
  }

  bool has_bias() const { return param_.scale_param().bias_term(); }

  Blob input_;  // a copy of the bottom, in place only
  // The BatchNorm whose top this layer reads, if this layer's Backward also computes its gradients.
  Normalization* normalization_ = nullptr;
};

}  // namespace

void RegisterScaleBias(LayerRegistry& registry) {
  registry.Add<BiasLayer>("Bias");
  registry.Add<ScaleLayer>("Scale");
}

}  // namespace hearth::caffe
