// Convolution and Deconvolution over 0 to 3 spatial axes: by ATen, and pictures on CPU by oneDNN.
#include <ATen/ATen.h>

#include <memory>
#include <tuple>

#include "hearth/base/error.h"
#include "hearth/caffe/kernels/bias_sum.h"
#include "hearth/caffe/kernels/channels_last_convolution.h"
#include "hearth/caffe/kernels/onednn_convolution.h"
#include "hearth/caffe/kernels/window.h"
#include "hearth/caffe/layers/all_layers.h"
#include "hearth/caffe/net/filler.h"

namespace hearth::caffe {
namespace {

class ConvolutionLayer : public Layer {
 public:
  ConvolutionLayer(const LayerParameter& param, const NetContext& context, bool transposed = false)
      : Layer(param, context), transposed_(transposed) {}

  LayerTraits traits() const override {
    const bool pictures = param_.convolution_param().axis() == 1;
    return {.arity = {1, Arity::kNoLimit, 1, Arity::kNoLimit, true},
            .channels_last = pictures ? ChannelsLast::kAny : ChannelsLast::kNo};
  }

  void SetUp(const Blobs& bottom, const Blobs& top) override {
    const ConvolutionParameter& param = param_.convolution_param();
    axis_ = bottom[0]->CanonicalAxis(param.axis());
    const int64_t spatial_axes = bottom[0]->num_axes() - axis_ - 1;
    Require(spatial_axes <= 3, ErrorCode::kUnimplemented,
            "a bottom of shape {} has {} spatial axes after axis {}; up to 3 are supported",
            bottom[0]->ShapeString(), spatial_axes, axis_);
    window_ = ReadWindow(param, spatial_axes);
    channels_ = bottom[0]->shape(axis_);
    outputs_ = param.num_output();
    group_ = param.group();
    Require(outputs_ > 0, ErrorCode::kInvalidArgument, "convolution_param needs num_output");
    Require(group_ > 0 && channels_ % group_ == 0 && outputs_ % group_ == 0,
            ErrorCode::kInvalidArgument,
            "group {} does not divide its {} input channels and {} outputs", group_, channels_,
            outputs_);
    MakeParameters(param);
  }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    const int64_t spatial_axes = static_cast<int64_t>(window_.kernel.size());
    const Blob& first = *bottom[0];
    Require(first.num_axes() == axis_ + 1 + spatial_axes && first.shape(axis_) == channels_,
            ErrorCode::kInvalidArgument,
            "it was made for {} channels on axis {} and {} spatial axes, not for shape {}",
            channels_, axis_, spatial_axes, first.ShapeString());
    Shape shape(first.shape().begin(), first.shape().begin() + axis_);
    shape.push_back(outputs_);
    for (int64_t i = 0; i < spatial_axes; ++i) {
      const int64_t size = OutputSize(first.shape(axis_ + 1 + i), i);
      Require(size > 0, ErrorCode::kInvalidArgument,
              "kernel {} with pad {} does not fit into axis {} of shape {}", window_.kernel[i],
              window_.pad[i], axis_ + 1 + i, first.ShapeString());
      shape.push_back(size);
    }
    for (size_t i = 0; i < bottom.size(); ++i) {
      Require(bottom[i]->shape() == first.shape(), ErrorCode::kInvalidArgument,
              "all bottoms must have one shape: {} and {} differ", first.ShapeString(),
              bottom[i]->ShapeString());
      top[i]->Reshape(shape);
    }
    PlanPictures(first, shape);
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    if (pictures_) {
      const at::Tensor bias = has_bias() ? blobs_[1]->data() : at::Tensor();
      for (size_t i = 0; i < bottom.size(); ++i) {
        pictures_->Forward(bottom[i]->data(), blobs_[0]->data(), bias, top[i]->data());
      }
      return;
    }
    const ScopedWindow w = AtenWindow();
    const at::Tensor weight = AtenWeight();
    c10::optional<at::Tensor> bias;
    if (has_bias()) bias = AsFactor(blobs_[1]->device_data());
    for (size_t i = 0; i < bottom.size(); ++i) {
      const at::Tensor x = AsFactor(AtenView(*bottom[i], bottom[i]->device_data()));
      top[i]->SetDeviceData(
          at::convolution(x, weight, bias, w.stride, w.pad, w.dilation, transposed_, w.zero, group_)
              .to(at::kFloat));
    }
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    const ScopedWindow w = AtenWindow();
    const at::Tensor weight = AtenWeight();
    const bool wants_weight = param_propagate_down(0);
    const bool wants_bias = has_bias() && param_propagate_down(1);
    for (size_t i = 0; i < bottom.size(); ++i) {
      if (!propagate_down[i] && !wants_weight && !wants_bias) continue;
      if (pictures_) {
        BackwardPictures(top[i], propagate_down[i], bottom[i]);
        continue;
      }
      const auto [dx, dw, db] = at::convolution_backward(
          AsFactor(AtenView(*top[i], top[i]->device_diff())),
          AsFactor(AtenView(*bottom[i], bottom[i]->device_data())), weight,
          at::IntArrayRef{outputs_}, w.stride, w.pad, w.dilation, transposed_, w.zero, group_,
          {propagate_down[i], wants_weight, wants_bias});
      if (propagate_down[i]) bottom[i]->SetDeviceDiff(dx.to(at::kFloat));
      if (wants_weight) blobs_[0]->AddToDeviceDiff(dw);
      if (wants_bias) blobs_[1]->AddToDeviceDiff(db);
    }
  }

 private:
  // oneDNN takes pictures [batch, channels, height, width] of one shape and layout for all bottoms.
  void PlanPictures(const Blob& bottom, const Shape& top) {
    if (on_device() || transposed_ || axis_ != 1 || window_.kernel.size() != 2 ||
        bottom.count() == 0) {
      pictures_.reset();
      return;
    }
    const Shape& from = bottom.shape();
    const OnednnConvolution::Spec spec{
        from[0],          channels_,          outputs_,
        group_,           {from[2], from[3]}, {top[2], top[3]},
        window_.kernel,   window_.stride,     window_.pad,
        window_.dilation, has_bias(),         context().precision == Precision::kBfloat16};
    if (!pictures_ || !(pictures_->spec() == spec)) {
      pictures_ = std::make_unique<OnednnConvolution>(spec);
      places_ = ChannelsLastConvolution::Pays(spec)
                    ? std::make_unique<ChannelsLastConvolution>(spec)
                    : nullptr;
    }
  }

  void BackwardPictures(Blob* top, bool wants_bottom, Blob* bottom) {
    if (places_ && top->layout() == Layout::kChannelsLast &&
        bottom->layout() == Layout::kChannelsLast) {
      return BackwardBy(*places_, top, wants_bottom, bottom);
    }
    BackwardBy(*pictures_, top, wants_bottom, bottom);
  }

  template <typename Convolution>
  void BackwardBy(Convolution& convolution, Blob* top, bool wants_bottom, Blob* bottom) {
    if (param_propagate_down(0)) {
      const auto [dw, beta] = blobs_[0]->diff_to_add_to();
      convolution.BackwardWeights(bottom->data(), top->diff(), beta, dw);
    }
    // oneDNN's own sum took a twentieth of cifar10_quick's step.
    if (has_bias() && param_propagate_down(1)) AddBiasSum(top->diff(), blobs_[1]->diff());
    if (wants_bottom) convolution.BackwardData(top->diff(), blobs_[0]->data(), bottom->diff());
  }

  // The window as ATen takes it: at least one spatial axis.
  struct ScopedWindow {
    std::vector<int64_t> stride, pad, dilation, zero;
  };
  ScopedWindow AtenWindow() const {
    if (window_.kernel.empty()) return {{1}, {0}, {1}, {0}};
    return {window_.stride, window_.pad, window_.dilation,
            std::vector<int64_t>(window_.kernel.size(), 0)};
  }

  // Batch axes folded into one; an axis of length 1 where there is no spatial one.
  at::Tensor AtenView(const Blob& blob, const at::Tensor& tensor) const {
    std::vector<int64_t> shape{blob.count(0, axis_)};
    shape.insert(shape.end(), blob.shape().begin() + axis_, blob.shape().end());
    if (window_.kernel.empty()) shape.push_back(1);
    return tensor.view(shape);
  }

  at::Tensor AtenWeight() {
    const at::Tensor weight = AsFactor(blobs_[0]->device_data());
    return window_.kernel.empty() ? weight.unsqueeze(-1) : weight;
  }

  // On devices, in the precision of products.
  at::Tensor AsFactor(const at::Tensor& tensor) const {
    if (!on_device()) return tensor;
    const bool narrow = context().precision == Precision::kBfloat16;
    const at::Tensor factor = narrow ? tensor.to(at::kBFloat16) : tensor;
    // cuDNN computes groups one by one unless channels are last.
    const bool grouped = group_ > 1 && group_ < channels_ && tensor.dim() == 4;
    return grouped ? factor.contiguous(at::MemoryFormat::ChannelsLast) : factor;
  }

  void MakeParameters(const ConvolutionParameter& param) {
    Shape shape =
        transposed_ ? Shape{channels_, outputs_ / group_} : Shape{outputs_, channels_ / group_};
    shape.insert(shape.end(), window_.kernel.begin(), window_.kernel.end());
    Random& random = *context().random;
    blobs_ = {std::make_shared<Blob>(shape)};
    Fill(param.weight_filler(), *blobs_[0], random);
    if (param.bias_term()) {
      blobs_.push_back(std::make_shared<Blob>(Shape{outputs_}));
      Fill(param.bias_filler(), *blobs_[1], random);
    }
  }

  int64_t OutputSize(int64_t input, int64_t i) const {
    if (!transposed_) return window_.OutputSize(input, i);
    return window_.stride[i] * (input - 1) + window_.Reach(i) - 2 * window_.pad[i];
  }

  bool has_bias() const { return blobs_.size() > 1; }

  const bool transposed_;
  Window window_;
  std::unique_ptr<OnednnConvolution> pictures_;      // where it applies
  std::unique_ptr<ChannelsLastConvolution> places_;  // beside it, where it pays
  int64_t axis_ = 0, channels_ = 0, outputs_ = 0, group_ = 1;
};

class DeconvolutionLayer : public ConvolutionLayer {
 public:
  DeconvolutionLayer(const LayerParameter& param, const NetContext& context)
      : ConvolutionLayer(param, context, /*transposed=*/true) {}
};

}  // namespace

void RegisterConvolution(LayerRegistry& registry) {
  registry.Add<ConvolutionLayer>("Convolution");
  registry.Add<DeconvolutionLayer>("Deconvolution");
}

}  // namespace hearth::caffe
