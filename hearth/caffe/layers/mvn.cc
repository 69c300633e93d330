// MVN: subtracts the mean of each row or channel and divides by its standard deviation.
#include <algorithm>
#include <cmath>

#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"
#include "hearth/caffe/tensor/parallel.h"

namespace hearth::caffe {
namespace {

// y = (x - mean) / (deviation + eps) for each channel of an image, or for each whole image with
// across_channels. With m(...) as the mean over a channel or image:
//   dx = (dy - m(dy) - y * m(dy * y)) / (deviation + eps)
class MvnLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.allows_in_place = true}; }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    if (top[0] != bottom[0]) top[0]->ReshapeLike(*bottom[0]);
    const int64_t axes = param_.mvn_param().across_channels() ? 1 : 2;
    rows_ = bottom[0]->count(0, std::min(axes, bottom[0]->num_axes()));
    size_ = rows_ == 0 ? 0 : bottom[0]->count() / rows_;
    scale_.set_device(context().device);
    scale_.Reshape({rows_, 1});
    if (keeps_output()) output_.ReshapeLike(*bottom[0]);
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    if (on_device()) return ForwardOnDevice(*bottom[0], *top[0]);
    const float* x = bottom[0]->data_ptr();
    float *y = top[0]->data_ptr(), *scale = scale_.data_ptr();
    ForEachRow([&](int64_t row) { Normalize(x + row * size_, y + row * size_, &scale[row]); });
    // The gradient is computed from y, not x, so that the layer can run in place.
    if (keeps_output()) output_.data().copy_(top[0]->data());
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    if (!propagate_down[0]) return;
    Blob& output = keeps_output() ? output_ : *top[0];
    if (on_device()) return BackwardOnDevice(output, *top[0], *bottom[0]);
    const float *y = output.data_ptr(), *scale = scale_.data_ptr();
    const float* dy = top[0]->diff_ptr();
    float* dx = bottom[0]->diff_ptr();
    ForEachRow([&](int64_t row) {
      const int64_t offset = row * size_;
      Gradient(y + offset, dy + offset, scale[row], dx + offset);
    });
  }

 private:
  bool normalizes_variance() const { return param_.mvn_param().normalize_variance(); }
  bool keeps_output() const { return top_overwritten() && normalizes_variance(); }

  template <typename Function>
  void ForEachRow(Function f) const {
    // At least 16,384 values per thread; size_ may be 0.
    ParallelFor(0, rows_, 16384 / (size_ + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) f(row);
    });
  }

  Tensor Rows(const Tensor& values) const { return values.view({rows_, size_}); }

  void ForwardOnDevice(Blob& bottom, Blob& top) {
    const Tensor x = Rows(bottom.device_data());
    Tensor y = Rows(top.device_data());
    device::sub_out(y, x, x.mean(1, /*keepdim=*/true));
    if (normalizes_variance()) {
      Tensor& scale = scale_.device_data();
      device::mean_out(scale, y.square(), 1, /*keepdim=*/true);
      scale.sqrt_().add_(param_.mvn_param().eps()).reciprocal_();
      y.mul_(scale);
    }
    if (keeps_output()) output_.device_data().copy_(top.device_data());
  }

  void BackwardOnDevice(Blob& output, Blob& top, Blob& bottom) {
    const Tensor dy = Rows(top.device_diff());
    Tensor dx = Rows(bottom.device_diff());
    const Tensor less_mean = dy - dy.mean(1, /*keepdim=*/true);
    if (!normalizes_variance()) {
      dx.copy_(less_mean);
      return;
    }
    const Tensor y = Rows(output.device_data());
    device::sub_out(dx, less_mean, y * (dy * y).mean(1, /*keepdim=*/true));
    dx.mul_(scale_.device_data());
  }

  // As in Caffe, eps is added to the standard deviation. The variance takes two passes, because the
  // mean of squares minus the squared mean loses precision.
  void Normalize(const float* x, float* y, float* scale) const {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < size_; ++i) sum += x[i];
    const float mean = static_cast<float>(sum / static_cast<double>(size_));
    for (int64_t i = 0; i < size_; ++i) {
      y[i] = x[i] - mean;
      squares += y[i] * y[i];
    }
    *scale = 1;
    if (!normalizes_variance()) return;
    const double deviation = std::sqrt(squares / static_cast<double>(size_));
    *scale = 1 / (static_cast<float>(deviation) + param_.mvn_param().eps());
    for (int64_t i = 0; i < size_; ++i) y[i] *= *scale;
  }

  // As in Caffe, the derivative of the deviation is computed as if eps were 0.
  void Gradient(const float* y, const float* dy, float scale, float* dx) const {
    double sum = 0, product = 0;
    for (int64_t i = 0; i < size_; ++i) {
      sum += dy[i];
      product += dy[i] * y[i];
    }
    const float mean = static_cast<float>(sum / static_cast<double>(size_));
    const float slope =
        normalizes_variance() ? static_cast<float>(product / static_cast<double>(size_)) : 0.f;
    for (int64_t i = 0; i < size_; ++i) dx[i] = scale * (dy[i] - mean - y[i] * slope);
  }

  int64_t rows_ = 0, size_ = 0;
  Blob scale_;   // of each row in the last Forward
  Blob output_;  // a copy, if a later layer overwrites the top
};

}  // namespace

void RegisterMvn(LayerRegistry& registry) { registry.Add<MvnLayer>("MVN"); }

}  // namespace hearth::caffe
