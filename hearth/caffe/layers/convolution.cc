// Convolution and Deconvolution over 0 to 3 spatial axes, computed by oneDNN on the CPU and by ATen
// on devices.
#include <memory>
#include <tuple>

#include "hearth/base/error.h"
#include "hearth/caffe/kernels/bias_sum.h"
#include "hearth/caffe/kernels/channels_last_convolution.h"
#include "hearth/caffe/kernels/int8_product.h"
#include "hearth/caffe/kernels/onednn_convolution.h"
#include "hearth/caffe/kernels/window.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"
#include "hearth/caffe/tensor/filler.h"

namespace hearth::caffe {
namespace {

// A cross-correlation, as in Caffe: summed over channels c and kernel positions k,
//   y[n, o, p] = b[o] + sum of w[o, c, k] * x[n, c, p * stride - pad + k * dilation].
// Groups divide the outputs and the channels into equally many parts, and an output reads only the
// channels of the same group. If transposed (Deconvolution), Forward computes the input gradient of
// a convolution from outputs to channels, with dy = x. The layer's weights are the weights of that
// convolution.
class ConvolutionLayer : public Layer {
 public:
  ConvolutionLayer(const LayerParameter& param, const NetContext& context, bool transposed = false)
      : Layer(param, context), transposed_(transposed) {}

  LayerTraits traits() const override {
    const bool images = param_.convolution_param().axis() == 1;
    return {.arity = {1, Arity::kNoLimit, 1, Arity::kNoLimit, true},
            .channels_last = images ? ChannelsLast::kAny : ChannelsLast::kNo};
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
    Require(outputs_ > 0, ErrorCode::kInvalidArgument,
            "convolution_param needs num_output, the number of output channels");
    Require(group_ > 0 && channels_ % group_ == 0 && outputs_ % group_ == 0,
            ErrorCode::kInvalidArgument,
            "group {} does not divide its {} input channels and {} outputs", group_, channels_,
            outputs_);
    MakeParameters(param);
  }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    const int64_t spatial_axes = static_cast<int64_t>(window_.kernel.size());
    const Blob& first = *bottom[0];
    Require(
        first.num_axes() == axis_ + 1 + spatial_axes && first.shape(axis_) == channels_,
        ErrorCode::kInvalidArgument,
        "the layer was made for {} spatial axes and {} channels (on axis {}), but the bottom has "
        "shape {}",
        spatial_axes, channels_, axis_, first.ShapeString());
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
    Plan(first, shape);
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    if (on_device()) return ForwardOnDevice(bottom, top);
    // convolution_ is null if the bottoms have no values.
    const Tensor bias = has_bias() ? blobs_[1]->data() : Tensor();
    const Tensor weight = WithSpatialAxis(blobs_[0]->data());
    for (size_t i = 0; i < bottom.size() && convolution_; ++i) {
      const Tensor x = Folded(*bottom[i], bottom[i]->data());
      Tensor y = Folded(*top[i], top[i]->data());
      if (int8_) {
        int8_->Forward(x, weight, bias, y);
      } else if (!transposed_) {
        convolution_->Forward(x, weight, bias, y);
      } else {
        // BackwardData() adds no bias, so the bias is added afterwards.
        convolution_->BackwardData(x, weight, y);
        if (has_bias()) y.add_(OfChannels(bias, y.dim()));
      }
    }
  }

  void ForgetWeights() override {
    if (int8_) int8_->ForgetWeights();
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    for (size_t i = 0; i < bottom.size(); ++i) {
      if (!propagate_down[i] && !param_propagate_down(0) && !wants_bias()) continue;
      if (on_device()) {
        BackwardOnDevice(*top[i], propagate_down[i], *bottom[i]);
      } else if (convolution_) {
        BackwardOnHost(top[i], propagate_down[i], bottom[i]);
      }
    }
  }

 private:
  // Prepares convolution_ for bottoms of one shape, or resets it on devices and for bottoms without
  // values. If transposed, convolution_ is the convolution in the opposite direction, whose input
  // gradient Forward computes.
  void Plan(const Blob& bottom, const Shape& top) {
    if (on_device() || bottom.count() == 0) {
      convolution_.reset();
      int8_.reset();
      return;
    }
    Shape from(bottom.shape().begin() + axis_ + 1, bottom.shape().end());
    Shape to(top.begin() + axis_ + 1, top.end());
    Window window = window_;
    // Without spatial axes, the convolution has one position and a kernel of size 1.
    if (from.empty()) {
      from = to = window.kernel = window.stride = window.dilation = {1};
      window.pad = {0};
    }
    const int64_t batch = bottom.count(0, axis_);
    const bool narrow = !transposed_ && context().precision == Precision::kBfloat16;
    OnednnConvolution::Spec spec = {
        batch,         channels_,     outputs_,   group_,          from,       to,
        window.kernel, window.stride, window.pad, window.dilation, has_bias(), narrow};
    if (transposed_) {
      std::swap(spec.channels, spec.outputs);
      std::swap(spec.input, spec.output);
      spec.has_bias = false;
    }
    // Reshape precedes every Forward, usually with unchanged shapes.
    if (convolution_ && convolution_->spec() == spec) return;
    convolution_ = std::make_unique<OnednnConvolution>(spec);
    const bool rounds = !transposed_ && context().precision == Precision::kInt8;
    int8_ = rounds ? Int8Product::OfConvolution(spec) : nullptr;
    const bool pays = !transposed_ && axis_ == 1 && ChannelsLastConvolution::Pays(spec);
    channels_last_ = pays ? std::make_unique<ChannelsLastConvolution>(spec) : nullptr;
  }

  void BackwardOnHost(Blob* top, bool wants_bottom, Blob* bottom) {
    const Tensor dy = Folded(*top, top->diff());
    if (param_propagate_down(0)) {
      const auto [diff, beta] = blobs_[0]->diff_to_add_to();
      Tensor dw = WithSpatialAxis(diff);
      const Tensor x = Folded(*bottom, bottom->data());
      if (channels_last_ && dy.is_channels_last() && x.is_channels_last()) {
        channels_last_->BackwardWeights(x, dy, beta, dw);
      } else {
        // If transposed, the top is the input of the convolution, and the bottom its output.
        convolution_->BackwardWeights(transposed_ ? dy : x, transposed_ ? x : dy, beta, dw);
      }
    }
    // AddBiasSum() replaces oneDNN's bias gradient, which took 5 % of cifar10_quick's iteration.
    if (wants_bias()) AddBiasSum(dy, blobs_[1]->diff());
    if (wants_bottom) GiveBottom(dy, bottom);
  }

  void GiveBottom(const Tensor& dy, Blob* bottom) {
    const Tensor weight = WithSpatialAxis(blobs_[0]->data());
    Tensor dx = Folded(*bottom, bottom->diff());
    if (transposed_) {
      convolution_->Forward(dy, weight, {}, dx);
    } else if (channels_last_ && dy.is_channels_last() && dx.is_channels_last()) {
      channels_last_->BackwardData(dy, weight, dx);
    } else {
      convolution_->BackwardData(dy, weight, dx);
    }
  }

  void ForwardOnDevice(const Blobs& bottom, const Blobs& top) {
    const device::ConvolutionWindow window = DeviceWindow();
    const Tensor weight = DeviceWeight();
    const Tensor bias = has_bias() ? AsFactor(blobs_[1]->device_data()) : Tensor();
    for (size_t i = 0; i < bottom.size(); ++i) {
      const Tensor x = AsFactor(Folded(*bottom[i], bottom[i]->device_data()));
      top[i]->SetDeviceData(device::convolution(x, weight, bias, window).to(HEARTH_FLOAT));
    }
  }

  // Overwrites the gradient of the bottom; adds to the gradients of the parameters.
  void BackwardOnDevice(Blob& top, bool wants_bottom, Blob& bottom) {
    const auto [dx, dw, db] = device::convolution_backward(
        AsFactor(Folded(top, top.device_diff())), AsFactor(Folded(bottom, bottom.device_data())),
        DeviceWeight(), DeviceWindow(), {wants_bottom, param_propagate_down(0), wants_bias()});
    if (wants_bottom) bottom.SetDeviceDiff(dx.to(HEARTH_FLOAT));
    if (param_propagate_down(0)) blobs_[0]->AddToDeviceDiff(dw);
    if (wants_bias()) blobs_[1]->AddToDeviceDiff(db);
  }

  // The window in ATen's form, with at least one spatial axis.
  device::ConvolutionWindow DeviceWindow() const {
    if (window_.kernel.empty()) return {{1}, {0}, {1}, transposed_, group_};
    return {window_.stride, window_.pad, window_.dilation, transposed_, group_};
  }

  // Folds the batch axes into one. Adds an axis of length 1 if there is no spatial axis.
  Tensor Folded(const Blob& blob, const Tensor& tensor) const {
    if (axis_ == 1 && !window_.kernel.empty()) return tensor;
    std::vector<int64_t> shape{blob.count(0, axis_)};
    shape.insert(shape.end(), blob.shape().begin() + axis_, blob.shape().end());
    if (window_.kernel.empty()) shape.push_back(1);
    return tensor.view(shape);
  }
  Tensor WithSpatialAxis(const Tensor& weight) const {
    return window_.kernel.empty() ? weight.unsqueeze(-1) : weight;
  }
  Tensor DeviceWeight() const { return WithSpatialAxis(AsFactor(blobs_[0]->device_data())); }
  // Views the bias, one value per channel, so that it broadcasts to tensors with `axes` axes.
  static Tensor OfChannels(const Tensor& bias, int64_t axes) {
    Shape shape(static_cast<size_t>(axes), 1);
    shape[1] = bias.numel();
    return bias.view(shape);
  }

  // Converts a tensor on a device to the precision in which products are computed.
  Tensor AsFactor(const Tensor& tensor) const {
    const bool narrow = context().precision == Precision::kBfloat16;
    const Tensor factor = narrow ? tensor.to(HEARTH_BFLOAT16) : tensor;
    // cuDNN computes the groups one after another unless the layout is channels-last.
    const bool grouped = group_ > 1 && group_ < channels_ && tensor.dim() == 4;
    return grouped ? factor.to_channels_last() : factor;
  }

  void MakeParameters(const ConvolutionParameter& param) {
    Shape shape =
        transposed_ ? Shape{channels_, outputs_ / group_} : Shape{outputs_, channels_ / group_};
    shape.insert(shape.end(), window_.kernel.begin(), window_.kernel.end());
    Random& random = *context().random;
    blobs_ = {FilledBlob(shape, param.weight_filler(), random)};
    if (param.bias_term()) blobs_.push_back(FilledBlob({outputs_}, param.bias_filler(), random));
  }

  // If transposed, returns the smallest input size for which a convolution has `input` positions.
  int64_t OutputSize(int64_t input, int64_t i) const {
    if (!transposed_) return window_.OutputSize(input, i);
    return window_.stride[i] * (input - 1) + window_.Reach(i) - 2 * window_.pad[i];
  }

  bool has_bias() const { return blobs_.size() > 1; }
  bool wants_bias() const { return has_bias() && param_propagate_down(1); }

  const bool transposed_;
  Window window_;
  std::unique_ptr<OnednnConvolution> convolution_;
  std::unique_ptr<Int8Product> int8_;  // used in Forward if the net's precision is int8
  std::unique_ptr<ChannelsLastConvolution> channels_last_;  // for the gradients, where it is faster
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
