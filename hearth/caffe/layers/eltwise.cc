// Eltwise: product, weighted sum or maximum of blobs of one shape.
#include "hearth/base/error.h"
#include "hearth/caffe/layers/neuron.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"

namespace hearth::caffe {
namespace {

// SUM: y = sum of coeff_i * x_i, dx_i = coeff_i * dy.
// PROD: y = product of all x_i, dx_i = dy * product of the others, or dy * y / x_i.
// MAX: dx_i = dy where y came from x_i, else 0.
class EltwiseLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    return {.arity = {2, Arity::kNoLimit, 1, 1}, .channels_last = ChannelsLast::kSame};
  }

  void SetUp(const Blobs& bottom, const Blobs& top) override {
    const EltwiseParameter& param = param_.eltwise_param();
    const std::vector<float>& coeff = param.coeff();
    Require(coeff.empty() || coeff.size() == bottom.size(), ErrorCode::kInvalidArgument,
            "eltwise_param has {} coeff for {} bottoms: set one per bottom, or none", coeff.size(),
            bottom.size());
    Require(coeff.empty() || param.operation() != EltwiseParameter::PROD,
            ErrorCode::kInvalidArgument, "coeff is only for operation SUM");
    coeff_ = coeff.empty() ? std::vector<float>(bottom.size(), 1.f) : coeff;
  }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    for (const Blob* blob : bottom) {
      Require(blob->shape() == bottom[0]->shape(), ErrorCode::kInvalidArgument,
              "all bottoms must have one shape: {} and {} differ", bottom[0]->ShapeString(),
              blob->ShapeString());
    }
    top[0]->ReshapeLike(*bottom[0]);
    if (operation() == EltwiseParameter::MAX && !on_device()) winner_.resize(top[0]->count());
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    if (on_device()) return ForwardOnDevice(bottom, top[0]->device_data());
    Tensor& y = top[0]->data();
    if (operation() == EltwiseParameter::PROD) {
      Map(
          y, [](float a, float b) { return a * b; }, bottom[0]->data(), bottom[1]->data());
      for (size_t i = 2; i < bottom.size(); ++i) y.mul_(bottom[i]->data());
    } else if (operation() == EltwiseParameter::SUM) {
      const float first = coeff_[0];
      Map(
          y, [first](float v) { return first * v; }, bottom[0]->data());
      for (size_t i = 1; i < bottom.size(); ++i) y.add_(bottom[i]->data(), coeff_[i]);
    } else {
      ForwardMax(bottom, top[0]->data_ptr());
    }
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    for (size_t i = 0; i < bottom.size(); ++i) {
      if (!propagate_down[i]) continue;
      if (on_device()) {
        BackwardOnDevice(bottom, *top[0], i);
        continue;
      }
      const Tensor& dy = top[0]->diff();
      Tensor& dx = bottom[i]->diff();
      if (operation() == EltwiseParameter::PROD) {
        BackwardProduct(bottom, top[0], i);
      } else if (operation() == EltwiseParameter::SUM) {
        Map(
            dx, [c = coeff_[i]](float g) { return c * g; }, dy);
      } else {
        const float* from = dy.data_ptr();
        float* to = dx.data_ptr();
        for (int64_t j = 0; j < top[0]->count(); ++j) {
          to[j] = winner_[j] == static_cast<int32_t>(i) ? from[j] : 0;
        }
      }
    }
  }

 private:
  void ForwardOnDevice(const Blobs& bottom, const Tensor& y) {
    if (operation() == EltwiseParameter::MAX) return MaxOnDevice(bottom, y);
    const bool is_sum = operation() == EltwiseParameter::SUM;
    const Tensor &first = bottom[0]->device_data(), &second = bottom[1]->device_data();
    Tensor out = y;
    if (!is_sum) {
      device::mul_out(out, first, second);
    } else if (coeff_[0] == 1) {
      // If the first coefficient is 1, as usual, one pass suffices instead of two.
      device::add_out(out, first, second, coeff_[1]);
    } else {
      device::mul_out(out, first, coeff_[0]);
      out.add_(second, coeff_[1]);
    }
    for (size_t i = 2; i < bottom.size(); ++i) {
      const Tensor& x = bottom[i]->device_data();
      is_sum ? y.add_(x, coeff_[i]) : y.mul_(x);
    }
  }

  void BackwardOnDevice(const Blobs& bottom, Blob& top, size_t i) {
    const Tensor &dy = top.device_diff(), &dx = bottom[i]->device_diff();
    dx.copy_(dy);
    if (operation() == EltwiseParameter::MAX) {
      dx.masked_fill_(device_winner_ != static_cast<int64_t>(i), 0);
    } else if (operation() == EltwiseParameter::SUM) {
      if (coeff_[i] != 1) dx.mul_(coeff_[i]);
    } else if (!DividesProduct()) {
      for (size_t j = 0; j < bottom.size(); ++j) {
        if (j != i) dx.mul_(bottom[j]->device_data());
      }
    } else {
      dx.mul_(top.device_data() / bottom[i]->device_data());
    }
  }

  // With stable_prod_grad, the default, a bottom's gradient multiplies the other bottoms. Dividing
  // the product by the bottom itself is faster, but computes 0 / 0 where the bottom is 0, and needs
  // the top's values.
  bool DividesProduct() const {
    return !param_.eltwise_param().stable_prod_grad() && !top_overwritten();
  }

  EltwiseParameter::EltwiseOp operation() const { return param_.eltwise_param().operation(); }

  // In a tie of the first two bottoms, the second one wins; a later bottom loses every tie.
  void MaxOnDevice(const Blobs& bottom, const Tensor& y) {
    const Tensor &first = bottom[0]->device_data(), &second = bottom[1]->device_data();
    device_winner_ = (first > second).logical_not_().to(HEARTH_INT);
    y.copy_(device::maximum(first, second));
    for (size_t i = 2; i < bottom.size(); ++i) {
      const Tensor& x = bottom[i]->device_data();
      device_winner_.masked_fill_(x > y, static_cast<int64_t>(i));
      y.copy_(device::maximum(x, y));
    }
  }

  void ForwardMax(const Blobs& bottom, float* y) {
    const float* first = bottom[0]->data_ptr();
    const float* second = bottom[1]->data_ptr();
    for (int64_t j = 0; j < bottom[0]->count(); ++j) {
      // As in Caffe, the second bottom wins a tie with the first; later bottoms lose ties.
      winner_[j] = first[j] > second[j] ? 0 : 1;
      y[j] = std::max(first[j], second[j]);
    }
    for (size_t i = 2; i < bottom.size(); ++i) {
      const float* x = bottom[i]->data_ptr();
      for (int64_t j = 0; j < bottom[0]->count(); ++j) {
        if (x[j] > y[j]) {
          winner_[j] = static_cast<int32_t>(i);
          y[j] = x[j];
        }
      }
    }
  }

  void BackwardProduct(const Blobs& bottom, Blob* top, size_t i) {
    Tensor& dx = bottom[i]->diff();
    if (DividesProduct()) {
      Map(
          dx, [](float y, float x, float g) { return y / x * g; }, top->data(), bottom[i]->data(),
          top->diff());
      return;
    }
    dx.copy_(top->diff());
    for (size_t j = 0; j < bottom.size(); ++j) {
      if (j != i) dx.mul_(bottom[j]->data());
    }
  }

  std::vector<float> coeff_;
  // For MAX: index of the bottom from which each value was copied.
  std::vector<int32_t> winner_;
  Tensor device_winner_;
};

}  // namespace

void RegisterEltwise(LayerRegistry& registry) { registry.Add<EltwiseLayer>("Eltwise"); }

}  // namespace hearth::caffe
