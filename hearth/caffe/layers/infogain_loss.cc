// InfogainLoss: -log(softmax) of all classes, weighted by the true class's row of a matrix.
#include <algorithm>
#include <cmath>

#include "hearth/base/error.h"
#include "hearth/caffe/kernels/device_labels.h"
#include "hearth/caffe/kernels/loss_normalizer.h"
#include "hearth/caffe/kernels/vector_math.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/proto/wire_reader.h"
#include "hearth/caffe/tensor/blob_proto.h"
#include "hearth/caffe/tensor/device_ops.h"
#include "hearth/storage/file.h"

namespace hearth::caffe {
namespace {

// Caffe's kLOG_THRESHOLD, a lower bound of p: -log(p) is at most 46.
constexpr float kSmallest = 1e-20f;

// With p = softmax(x), H the matrix and l_i the label of row i:
//   loss = -1 / D * sum over i and c of H[l_i, c] * log(p[i, c])
//   dx[i, c] = loss weight / D * (p[i, c] * sum over k of H[l_i, k] - H[l_i, c])
// where D is the normalizer's divisor. With the unit matrix this is SoftmaxWithLoss.
class InfogainLossLayer : public Layer {
 public:
  InfogainLossLayer(const LayerParameter& param, const NetContext& context)
      : Layer(param, context),
        normalizer_(LossNormalizer::Read(param.loss_param(), LossParameter::VALID)),
        ignored_(IgnoredLabel(param.loss_param())) {}

  LayerTraits traits() const override {
    return {.arity = {2, 3, 1, 2}, .is_loss = true, .automatic_tops = true, .never_forced = {1, 2}};
  }

  // The matrix is bottom 2 or read from a file.
  void SetUp(const Blobs& bottom, const Blobs& top) override {
    if (bottom.size() > 2) return;
    const InfogainLossParameter& param = param_.infogain_loss_param();
    Require(param.has_source(), ErrorCode::kInvalidArgument,
            "InfogainLoss needs its matrix: set source in infogain_loss_param to its file, or give "
            "the layer a third bottom");
    BlobProto proto;
    ParseWire(storage::ReadFile(param.source()), param.source(), &proto);
    matrix_.set_device(context().device);
    matrix_.Reshape(ShapeOf(proto));
    ReadBlobData(proto, &matrix_);
  }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    axis_ = bottom[0]->CanonicalAxis(param_.infogain_loss_param().axis());
    layout_ = ClassLayout::Of(*bottom[0], axis_);
    layout_.RequireLabels(*bottom[1]);
    Require(Matrix(bottom).count() == layout_.classes * layout_.classes,
            ErrorCode::kInvalidArgument,
            "the infogain matrix has shape {}, but {} classes need {} values",
            Matrix(bottom).ShapeString(), layout_.classes, layout_.classes * layout_.classes);
    top[0]->Reshape({});
    probabilities_.ReshapeLike(*bottom[0]);
    if (top.size() > 1) top[1]->ReshapeLike(*bottom[0]);
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    if (on_device()) return ForwardOnDevice(bottom, top);
    Softmax({layout_.outer, layout_.classes, layout_.inner}, bottom[0]->data_ptr(),
            probabilities_.data_ptr());
    const float* p = probabilities_.data_ptr();
    const float* matrix = Matrix(bottom).data_ptr();
    double loss = 0;
    int64_t valid = 0;
    for (int64_t i = 0; i < layout_.outer * layout_.inner; ++i) {
      const auto label = ClassLabel(bottom[1]->data_ptr(), i, layout_.classes, ignored_);
      if (!label) continue;
      const float* weights = matrix + *label * layout_.classes;
      for (int64_t c = 0; c < layout_.classes; ++c) {
        loss -= weights[c] * std::log(std::max(p[layout_.Index(i, c)], kSmallest));
      }
      ++valid;
    }
    divisor_ = normalizer_.Divisor(layout_.outer, layout_.inner, valid);
    *top[0]->data_ptr() = static_cast<float>(loss) / divisor_;
    if (top.size() > 1) top[1]->data().copy_(probabilities_.data());
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    Require(
        std::none_of(propagate_down.begin() + 1, propagate_down.end(), [](bool b) { return b; }),
        ErrorCode::kInvalidArgument, "InfogainLoss has no gradient for its labels and its matrix");
    if (!propagate_down[0]) return;
    // The net puts the loss weight into the top's diff.
    const float scale = *top[0]->read_diff() / divisor_;
    if (on_device()) return BackwardOnDevice(scale, bottom);
    const float* p = probabilities_.data_ptr();
    const float* matrix = Matrix(bottom).data_ptr();
    float* dx = bottom[0]->diff_ptr();
    for (int64_t i = 0; i < layout_.outer * layout_.inner; ++i) {
      const auto label = ClassLabel(bottom[1]->data_ptr(), i, layout_.classes, ignored_);
      const float* weights = matrix + label.value_or(0) * layout_.classes;
      float sum = 0;
      for (int64_t c = 0; c < layout_.classes; ++c) sum += weights[c];
      for (int64_t c = 0; c < layout_.classes; ++c) {
        const int64_t at = layout_.Index(i, c);
        dx[at] = label ? scale * (p[at] * sum - weights[c]) : 0.f;
      }
    }
  }

 private:
  // The matrix row of each label: outer x classes x inner, 0 for ignored labels.
  Tensor WeightsOnDevice(const Blobs& bottom) {
    const Tensor matrix = Matrix(bottom).device_data().view({layout_.classes, layout_.classes});
    return matrix.index_select(0, labels_.index.flatten())
        .view({layout_.outer, layout_.inner, layout_.classes})
        .transpose(1, 2)
        .masked_fill(labels_.ignored, 0);
  }

  void ForwardOnDevice(const Blobs& bottom, const Blobs& top) {
    labels_ = DeviceLabels::Of(*bottom[1], layout_, ignored_);
    Tensor& p = probabilities_.device_data();
    device::softmax_out(p, bottom[0]->device_data(), axis_);
    const Tensor logs = ClassView(p, layout_).clamp_min(kSmallest).log_();
    divisor_ = normalizer_.Divisor(layout_.outer, layout_.inner, labels_.valid);
    const Tensor sum = logs.mul_(WeightsOnDevice(bottom)).sum();
    top[0]->device_data().copy_(sum / -divisor_);
    if (top.size() > 1) top[1]->device_data().copy_(p);
  }

  void BackwardOnDevice(float scale, const Blobs& bottom) {
    const Tensor weights = WeightsOnDevice(bottom);
    Tensor dx = ClassView(bottom[0]->device_diff(), layout_);
    device::mul_out(dx, ClassView(probabilities_.device_data(), layout_), weights.sum(1, true));
    dx.sub_(weights).mul_(scale);
  }

  Blob& Matrix(const Blobs& bottom) { return bottom.size() > 2 ? *bottom[2] : matrix_; }

  const LossNormalizer normalizer_;
  const std::optional<int64_t> ignored_;
  ClassLayout layout_;
  int64_t axis_ = 1;
  float divisor_ = 1;
  Blob matrix_;  // from the file: a row per true class
  Blob probabilities_;
  DeviceLabels labels_;  // of the last Forward on a device
};

}  // namespace

void RegisterInfogainLoss(LayerRegistry& registry) {
  registry.Add<InfogainLossLayer>("InfogainLoss");
}

}  // namespace hearth::caffe
