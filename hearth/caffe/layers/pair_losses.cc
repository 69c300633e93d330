// Losses between two blobs of one shape: EuclideanLoss and ContrastiveLoss.
#include <algorithm>
#include <cmath>

#include "hearth/base/error.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"

namespace hearth::caffe {
namespace {

void RequireSameCount(const Blobs& bottom) {
  Require(bottom[0]->count() == bottom[1]->count(), ErrorCode::kInvalidArgument,
          "the bottoms must have equally many values, but have shapes {} and {}",
          bottom[0]->ShapeString(), bottom[1]->ShapeString());
}

// loss = 1 / (2 N) * sum of (a - b)^2 over N rows. The gradients are +-(a - b) * loss weight / N.
class EuclideanLossLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    return {.arity = {2, 2, 1, 1}, .is_loss = true, .automatic_tops = true};
  }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    RequireSameCount(bottom);
    top[0]->Reshape({});
    difference_.ReshapeLike(*bottom[0]);
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    if (on_device()) {
      Tensor& d = difference_.device_data();
      device::sub_out(d, bottom[0]->device_data(), bottom[1]->device_data().view_as(d));
      top[0]->device_data().copy_(d.square().sum() / (2.0 * bottom[0]->shape(0)));
      return;
    }
    const float *a = bottom[0]->data_ptr(), *b = bottom[1]->data_ptr();
    float* d = difference_.data_ptr();
    double sum = 0;
    for (int64_t i = 0; i < difference_.count(); ++i) {
      d[i] = a[i] - b[i];
      sum += d[i] * d[i];
    }
    *top[0]->data_ptr() =
        static_cast<float>(sum / (2.0 * static_cast<double>(bottom[0]->shape(0))));
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    const float scale = *top[0]->read_diff() / static_cast<float>(bottom[0]->shape(0));
    for (int i = 0; i < 2; ++i) {
      if (!propagate_down[i]) continue;
      if (on_device()) {
        Tensor& dx = bottom[i]->device_diff();
        dx.copy_(difference_.device_data().view_as(dx)).mul_(i == 0 ? scale : -scale);
        continue;
      }
      const float* d = difference_.data_ptr();
      float* dx = bottom[i]->diff_ptr();
      const float factor = i == 0 ? scale : -scale;
      for (int64_t j = 0; j < difference_.count(); ++j) dx[j] = factor * d[j];
    }
  }

 private:
  Blob difference_;
};

// Pulls the rows of similar pairs together and pushes those of dissimilar pairs apart, up to a
// margin (Hadsell et al. 2006). With d the distance of a pair, loss = 1 / (2 N) * sum of d^2 for
// similar pairs and max(0, margin - d)^2 for dissimilar pairs. With legacy_version, which is
// Caffe's first formula, dissimilar pairs have max(0, margin - d^2).
class ContrastiveLossLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    return {.arity = {3, 3, 1, 1}, .is_loss = true, .automatic_tops = true, .never_forced = {2}};
  }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    RequireSameCount(bottom);
    const int64_t rows = bottom[0]->shape(0);
    Require(bottom[2]->count() == rows, ErrorCode::kInvalidArgument,
            "{} rows need {} similarity labels, but bottom 2 has shape {}", rows, rows,
            bottom[2]->ShapeString());
    top[0]->Reshape({});
    difference_.ReshapeLike(*bottom[0]);
    squares_.set_device(context().device);
    squares_.Reshape({rows});
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    if (on_device()) return ForwardOnDevice(bottom, *top[0]);
    const float *a = bottom[0]->data_ptr(), *b = bottom[1]->data_ptr();
    const float* similar = bottom[2]->data_ptr();
    const int64_t dim = difference_.count() / rows();
    float *d = difference_.data_ptr(), *squares = squares_.data_ptr();
    double loss = 0;
    for (int64_t n = 0; n < rows(); ++n) {
      float square = 0;
      for (int64_t i = n * dim; i < (n + 1) * dim; ++i) {
        d[i] = a[i] - b[i];
        square += d[i] * d[i];
      }
      squares[n] = square;
      if (similar[n] != 0) {
        loss += square;
      } else if (legacy()) {
        loss += std::max(margin() - square, 0.f);
      } else {
        const float missing = std::max(margin() - std::sqrt(square), 0.f);
        loss += missing * missing;
      }
    }
    *top[0]->data_ptr() = static_cast<float>(loss / (2.0 * static_cast<double>(rows())));
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    Require(!propagate_down[2], ErrorCode::kInvalidArgument,
            "ContrastiveLoss has no gradient for its similarity labels");
    const float scale = *top[0]->read_diff() / static_cast<float>(rows());
    if (on_device()) return BackwardOnDevice(scale, propagate_down, bottom);
    const float* similar = bottom[2]->data_ptr();
    const float *d = difference_.data_ptr(), *squares = squares_.data_ptr();
    const int64_t dim = difference_.count() / rows();
    for (int i = 0; i < 2; ++i) {
      if (!propagate_down[i]) continue;
      float* dx = bottom[i]->diff_ptr();
      for (int64_t n = 0; n < rows(); ++n) {
        const float factor = (i == 0 ? scale : -scale) * Pull(similar[n] != 0, squares[n]);
        for (int64_t j = n * dim; j < (n + 1) * dim; ++j) dx[j] = factor * d[j];
      }
    }
  }

 private:
  int64_t rows() const { return squares_.count(); }
  float margin() const { return param_.contrastive_loss_param().margin(); }
  bool legacy() const { return param_.contrastive_loss_param().legacy_version(); }

  // The gradient of a pair is the difference of its rows times this factor: 1 for similar pairs;
  // for dissimilar pairs within the margin, -(margin - d) / d, or -1 with legacy_version.
  float Pull(bool similar, float square) const {
    if (similar) return 1;
    if (legacy()) return margin() > square ? -1.f : 0.f;
    const float distance = std::sqrt(square);
    return distance < margin() ? -(margin() - distance) / (distance + kSmallest) : 0.f;
  }

  Tensor IsSimilar(Blob& labels) const { return labels.device_data().view({rows()}) != 0; }

  void ForwardOnDevice(const Blobs& bottom, Blob& top) {
    Tensor &d = difference_.device_data(), &squares = squares_.device_data();
    device::sub_out(d, bottom[0]->device_data(), bottom[1]->device_data().view_as(d));
    device::sum_out(squares, d.view({rows(), -1}).square(), 1);
    const Tensor apart = legacy() ? (margin() - squares).clamp_min_(0)
                                  : (margin() - squares.sqrt()).clamp_min_(0).square_();
    const Tensor losses = device::where(IsSimilar(*bottom[2]), squares, apart);
    top.device_data().copy_(losses.sum() / (2 * rows()));
  }

  void BackwardOnDevice(float scale, const std::vector<bool>& propagate_down, const Blobs& bottom) {
    const Tensor& squares = squares_.device_data();
    const Tensor distances = squares.sqrt();
    const Tensor push = legacy() ? -(squares < margin()).to(HEARTH_FLOAT)
                                 : -(margin() - distances).clamp_min_(0) / (distances + kSmallest);
    const Tensor pull = device::where(IsSimilar(*bottom[2]), 1.f, push).unsqueeze(1);
    const Tensor gradients = difference_.device_data().view({rows(), -1}) * pull;
    for (int i = 0; i < 2; ++i) {
      if (!propagate_down[i]) continue;
      const Tensor& dx = bottom[i]->device_diff();
      dx.copy_(gradients.view_as(dx)).mul_(i == 0 ? scale : -scale);
    }
  }

  // Prevents a division by zero for equal rows. The value is Caffe's.
  static constexpr float kSmallest = 1e-4f;

  Blob difference_;
  Blob squares_;  // the squared distance of each pair
};

}  // namespace

void RegisterPairLosses(LayerRegistry& registry) {
  registry.Add<ContrastiveLossLayer>("ContrastiveLoss");
  registry.Add<EuclideanLossLayer>("EuclideanLoss");
}

}  // namespace hearth::caffe
