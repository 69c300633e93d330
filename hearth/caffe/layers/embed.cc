// Embed: a learned vector for each index, such as a word embedding. Index -1, with which
// CaffeOnSpark's converters pad sentences, selects a zero vector that has no gradient; Caffe would
// read memory before the weights.
#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"
#include "hearth/caffe/tensor/filler.h"

namespace hearth::caffe {
namespace {

// y[i] = w[index_i] + b, dw[index_i] += dy[i], db += the sum of dy. Indices are floats, like all
// values of blobs, so they are exact up to 2^24.
class EmbedLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.never_forced = {0}}; }

  void SetUp(const Blobs& bottom, const Blobs& top) override {
    const EmbedParameter& param = param_.embed_param();
    inputs_ = param.input_dim();
    outputs_ = param.num_output();
    Require(inputs_ > 0 && outputs_ > 0, ErrorCode::kInvalidArgument,
            "embed_param has input_dim {} (number of indices) and num_output {} (length of a row); "
            "both must be above 0",
            inputs_, outputs_);
    Random& random = *context().random;
    blobs_ = {FilledBlob({inputs_, outputs_}, param.weight_filler(), random)};
    if (param.bias_term()) blobs_.push_back(FilledBlob({outputs_}, param.bias_filler(), random));
  }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    Shape shape = bottom[0]->shape();
    shape.push_back(outputs_);
    top[0]->Reshape(shape);
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    // Indices are checked on the host, for nets on devices too, because an index out of range would
    // read past the weights.
    const float* indices = bottom[0]->read_data();
    for (int64_t i = 0; i < bottom[0]->count(); ++i) {
      Require(IsFill(indices[i]) || (indices[i] >= 0 && indices[i] < static_cast<float>(inputs_)),
              ErrorCode::kInvalidArgument,
              "index {} at position {} must be from 0 to input_dim - 1 = {}, or -1 for no word",
              indices[i], i, inputs_ - 1);
    }
    if (on_device()) {
      Tensor y = top[0]->device_data().view({-1, outputs_});
      const Tensor indices = IndicesOnDevice(*bottom[0]);
      // Index -1 reads row 0, whose values are then multiplied by 0.
      y.copy_(blobs_[0]->device_data().index_select(0, indices.clamp_min(0)));
      y.mul_(indices.ge(0).unsqueeze(1));
      if (has_bias()) y.add_(blobs_[1]->device_data());
      return;
    }
    const float* w = blobs_[0]->data_ptr();
    const float* bias = has_bias() ? blobs_[1]->data_ptr() : nullptr;
    float* y = top[0]->data_ptr();
    for (int64_t i = 0; i < bottom[0]->count(); ++i, y += outputs_) {
      if (IsFill(indices[i])) {
        std::fill_n(y, outputs_, 0.0f);
      } else {
        std::copy_n(w + Row(indices[i]), outputs_, y);
      }
      if (bias == nullptr) continue;
      for (int64_t o = 0; o < outputs_; ++o) y[o] += bias[o];
    }
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    Require(!propagate_down[0], ErrorCode::kInvalidArgument,
            "Embed has no gradient for its indices");
    if (on_device()) {
      const Tensor dy = top[0]->device_diff().view({-1, outputs_});
      if (param_propagate_down(0)) {
        const Tensor indices = IndicesOnDevice(*bottom[0]);
        // Likewise, index -1 adds zeros to row 0.
        blobs_[0]->device_diff().index_add_(0, indices.clamp_min(0),
                                            dy * indices.ge(0).unsqueeze(1));
      }
      if (has_bias() && param_propagate_down(1)) blobs_[1]->device_diff().add_(dy.sum(0));
      return;
    }
    const float* indices = bottom[0]->data_ptr();
    const float* dy = top[0]->diff_ptr();
    float* dw = param_propagate_down(0) ? blobs_[0]->diff_ptr() : nullptr;
    float* dbias = has_bias() && param_propagate_down(1) ? blobs_[1]->diff_ptr() : nullptr;
    for (int64_t i = 0; i < bottom[0]->count(); ++i, dy += outputs_) {
      if (dw != nullptr && !IsFill(indices[i])) Add(dy, dw + Row(indices[i]));
      if (dbias != nullptr) Add(dy, dbias);
    }
  }

 private:
  bool has_bias() const { return blobs_.size() > 1; }
  static bool IsFill(float index) { return index == -1.0f; }
  static Tensor IndicesOnDevice(Blob& indices) {
    return indices.device_data().view({-1}).to(HEARTH_LONG);
  }
  int64_t Row(float index) const { return static_cast<int64_t>(index) * outputs_; }
  void Add(const float* from, float* to) const {
    for (int64_t o = 0; o < outputs_; ++o) to[o] += from[o];
  }

  int64_t inputs_ = 0, outputs_ = 0;
};

}  // namespace

void RegisterEmbed(LayerRegistry& registry) { registry.Add<EmbedLayer>("Embed"); }

}  // namespace hearth::caffe
