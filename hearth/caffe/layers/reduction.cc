// Reduction: the sum, sum of magnitudes, sum of squares or mean over all axes from `axis` on.
#include <algorithm>
#include <cmath>

#include "hearth/base/error.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"

namespace hearth::caffe {
namespace {

// y = coeff * sum of f(x) over each row, where f(x) is x, |x| or x^2; MEAN divides by the row's
// size. The gradient is dx = coeff * dy * f'(x), with f'(0) = 0 for |x|.
class ReductionLayer : public Layer {
 public:
  using Layer::Layer;

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    const ReductionParameter& param = param_.reduction_param();
    const int64_t axis = bottom[0]->CanonicalAxis(param.axis());
    top[0]->Reshape({bottom[0]->shape().begin(), bottom[0]->shape().begin() + axis});
    size_ = bottom[0]->count(axis);
    factor_ = param.coeff();
    if (param.operation() == ReductionParameter::MEAN) factor_ /= static_cast<float>(size_);
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    if (on_device()) {
      const Tensor terms = TermsOnDevice(Rows(bottom[0]->device_data()));
      top[0]->device_data().view({-1}).copy_(terms.sum(1).mul_(factor_));
      return;
    }
    const float* x = bottom[0]->data_ptr();
    float* y = top[0]->data_ptr();
    for (int64_t row = 0; row < top[0]->count(); ++row, x += size_) {
      // The sum is double, because a row may have millions of values.
      double sum = 0;
      for (int64_t i = 0; i < size_; ++i) sum += Term(x[i]);
      y[row] = static_cast<float>(sum) * factor_;
    }
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    if (!propagate_down[0]) return;
    if (on_device()) {
      const Tensor dx = Rows(bottom[0]->device_diff());
      SlopesOnDevice(Rows(bottom[0]->device_data()), dx);
      dx.mul_(top[0]->device_diff().view({-1, 1})).mul_(factor_);
      return;
    }
    const float* x = bottom[0]->data_ptr();
    const float* dy = top[0]->diff_ptr();
    float* dx = bottom[0]->diff_ptr();
    for (int64_t row = 0; row < top[0]->count(); ++row, x += size_, dx += size_) {
      const float g = dy[row] * factor_;
      for (int64_t i = 0; i < size_; ++i) dx[i] = g * Slope(x[i]);
    }
  }

 private:
  // Views the bottom as rows x size. A bottom without values has no rows.
  Tensor Rows(const Tensor& bottom) const {
    return bottom.view({bottom.numel() / std::max<int64_t>(size_, 1), size_});
  }
  Tensor TermsOnDevice(const Tensor& x) const {
    switch (param_.reduction_param().operation()) {
      case ReductionParameter::ASUM:
        return x.abs();
      case ReductionParameter::SUMSQ:
        return x.square();
      default:
        return x;
    }
  }
  void SlopesOnDevice(const Tensor& x, Tensor slopes) const {
    switch (param_.reduction_param().operation()) {
      case ReductionParameter::ASUM:
        device::sign_out(slopes, x);
        return;
      case ReductionParameter::SUMSQ:
        device::add_out(slopes, x, x);
        return;
      default:
        slopes.fill_(1);
    }
  }

  float Term(float x) const {
    switch (param_.reduction_param().operation()) {
      case ReductionParameter::ASUM:
        return std::fabs(x);
      case ReductionParameter::SUMSQ:
        return x * x;
      default:
        return x;
    }
  }
  float Slope(float x) const {
    switch (param_.reduction_param().operation()) {
      case ReductionParameter::ASUM:
        return x > 0 ? 1.f : x < 0 ? -1.f : 0.f;
      case ReductionParameter::SUMSQ:
        return 2 * x;
      default:
        return 1;
    }
  }

  int64_t size_ = 0;
  float factor_ = 1;
};

}  // namespace

void RegisterReduction(LayerRegistry& registry) { registry.Add<ReductionLayer>("Reduction"); }

}  // namespace hearth::caffe
