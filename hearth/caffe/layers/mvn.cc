// MVN: each row or channel less its mean, divided by its standard deviation.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "hearth/caffe/layers/all_layers.h"

namespace hearth::caffe {
namespace {

class MvnLayer : public Layer {
 public:
  using Layer::Layer;

  bool AllowsInPlace() const override { return true; }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    if (top[0] != bottom[0]) top[0]->ReshapeLike(*bottom[0]);
    const int64_t axes = param_.mvn_param().across_channels() ? 1 : 2;
    const int64_t rows = bottom[0]->count(0, std::min(axes, bottom[0]->num_axes()));
    size_ = rows == 0 ? 0 : bottom[0]->count() / rows;
    scale_.resize(rows, 1);
    if (keeps_output()) output_.ReshapeLike(*bottom[0]);
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    const float* x = bottom[0]->data_ptr();
    float* y = top[0]->data_ptr();
    ForEachRow([&](int64_t row) { Normalize(x + row * size_, y + row * size_, &scale_[row]); });
    if (keeps_output()) output_.data().copy_(top[0]->data());
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    if (!propagate_down[0]) return;
    const float* y = (keeps_output() ? output_ : *top[0]).data_ptr();
    const float* dy = top[0]->diff_ptr();
    float* dx = bottom[0]->diff_ptr();
    ForEachRow([&](int64_t row) {
      const int64_t offset = row * size_;
      Gradient(y + offset, dy + offset, scale_[row], dx + offset);
    });
  }

 private:
  bool normalizes_variance() const { return param_.mvn_param().normalize_variance(); }
  bool keeps_output() const { return top_overwritten() && normalizes_variance(); }

  template <typename Function>
  void ForEachRow(Function f) const {
    at::parallel_for(0, static_cast<int64_t>(scale_.size()), 16384 / (size_ + 1) + 1,
                     [&](int64_t begin, int64_t end) {
                       for (int64_t row = begin; row < end; ++row) f(row);
                     });
  }

  // eps is added to the standard deviation, as in Caffe.
  void Normalize(const float* x, float* y, float* scale) const {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < size_; ++i) sum += x[i];
    const float mean = static_cast<float>(sum / static_cast<double>(size_));
    for (int64_t i = 0; i < size_; ++i) {
      y[i] = x[i] - mean;
      squares += y[i] * y[i];
    }
    if (!normalizes_variance()) return;
    const double deviation = std::sqrt(squares / static_cast<double>(size_));
    *scale = 1 / (static_cast<float>(deviation) + param_.mvn_param().eps());
    for (int64_t i = 0; i < size_; ++i) y[i] *= *scale;
  }

  // As in Caffe, the slope of the deviation is taken as if eps were 0.
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

  int64_t size_ = 0;          // values of a row
  std::vector<float> scale_;  // of each row in the last Forward
  Blob output_;               // a copy, where a later layer overwrites the top
};

}  // namespace

void RegisterMvn(LayerRegistry& registry) { registry.Add<MvnLayer>("MVN"); }

}  // namespace hearth::caffe
