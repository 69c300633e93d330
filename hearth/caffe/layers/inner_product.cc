// InnerProduct: y = x W^T + b over the axes from `axis` on.
#include <memory>

#include "hearth/base/error.h"
#include "hearth/caffe/kernels/bias_sum.h"
#include "hearth/caffe/kernels/int8_product.h"
#include "hearth/caffe/kernels/matrix_product.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"
#include "hearth/caffe/tensor/filler.h"

namespace hearth::caffe {
namespace {

// For M rows of K inputs and N outputs: y [M, N] = x [M, K] W^T + b, W being N x K, or K x N with
// `transpose`. dW = dy^T x, db = the sum of dy over rows, dx = dy W.
class InnerProductLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    return {.matrix_axis = param_.inner_product_param().axis()};
  }

  void SetUp(const Blobs& bottom, const Blobs& top) override {
    const InnerProductParameter& param = param_.inner_product_param();
    outputs_ = param.num_output();
    Require(outputs_ > 0, ErrorCode::kInvalidArgument,
            "inner_product_param needs num_output, the number of outputs per row");
    axis_ = bottom[0]->CanonicalAxis(param.axis());
    inputs_ = bottom[0]->count(axis_);
    transpose_ = param.transpose();
    Random& random = *context().random;
    Shape shape = {outputs_, inputs_};
    if (transpose_) std::swap(shape[0], shape[1]);
    blobs_ = {FilledBlob(shape, param.weight_filler(), random)};
    if (param.bias_term()) blobs_.push_back(FilledBlob({outputs_}, param.bias_filler(), random));
  }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    const int64_t inputs = bottom[0]->count(axis_);
    Require(inputs == inputs_, ErrorCode::kInvalidArgument,
            "the weights take {} values per row, but a bottom of shape {} has {} from axis {} on",
            inputs_, bottom[0]->ShapeString(), inputs, axis_);
    rows_ = bottom[0]->count(0, axis_);
    Shape shape(bottom[0]->shape().begin(), bottom[0]->shape().begin() + axis_);
    shape.push_back(outputs_);
    top[0]->Reshape(shape);
    PlanInt8({rows_, inputs_, outputs_});
  }

  void ForgetWeights() override {
    if (int8_) int8_->ForgetWeights();
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    const Tensor x = bottom[0]->device_data().view({rows_, inputs_});
    Tensor y = top[0]->device_data().view({rows_, outputs_});
    const Tensor w = transpose_ ? blobs_[0]->device_data() : blobs_[0]->device_data().t();
    // Int8Product expects N x K weights, in any memory order.
    if (int8_) return int8_->Forward(x, w.t(), has_bias() ? blobs_[1]->data() : Tensor(), y);
    if (uses_bfloat16()) {
      // The product is bfloat16, too; the bias is added in float32.
      const Tensor product = ToBfloat16(x).mm(ToBfloat16(w));
      has_bias() ? y.copy_(product).add_(blobs_[1]->device_data()) : y.copy_(product);
      return;
    }
    Multiply(x, w, has_bias() ? blobs_[1]->device_data() : Tensor(), y);
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    const Tensor x = bottom[0]->device_data().view({rows_, inputs_});
    const Tensor dy = top[0]->device_diff().view({rows_, outputs_});
    const Tensor& w = blobs_[0]->device_data();
    if (uses_bfloat16()) return BackwardNarrow(x, dy, propagate_down[0], *bottom[0]);
    if (param_propagate_down(0)) {
      AddProductToDiff(transpose_ ? x.t() : dy.t(), transpose_ ? dy : x, *blobs_[0]);
    }
    if (has_bias() && param_propagate_down(1)) AddBiasSum(dy, blobs_[1]->device_diff());
    if (propagate_down[0]) {
      Tensor dx = bottom[0]->device_diff().view({rows_, inputs_});
      Multiply(dy, transpose_ ? w.t() : w, {}, dx);
    }
  }

 private:
  void PlanInt8(const Int8Product::Matrices& sizes) {
    if (context().precision != Precision::kInt8 || sizes == int8_sizes_) return;
    // The sizes are stored even if there is no int8 product for them, so that the product is
    // planned only once.
    int8_sizes_ = sizes;
    int8_ = Int8Product::OfMatrices(sizes);
  }

  // Returns true if products are computed from bfloat16 factors.
  bool uses_bfloat16() const { return on_device() && context().precision == Precision::kBfloat16; }
  static Tensor ToBfloat16(const Tensor& factor) { return factor.to(HEARTH_BFLOAT16); }

  void BackwardNarrow(const Tensor& x, const Tensor& dy, bool wants_bottom, Blob& bottom) {
    const Tensor narrow_dy = ToBfloat16(dy);
    if (param_propagate_down(0)) {
      const Tensor narrow_x = ToBfloat16(x);
      const auto [dw, beta] = blobs_[0]->diff_to_add_to();
      // The product is bfloat16, and is added to the float32 gradient.
      const Tensor product = transpose_ ? narrow_x.t().mm(narrow_dy) : narrow_dy.t().mm(narrow_x);
      beta == 0 ? dw.copy_(product) : dw.add_(product);
    }
    if (has_bias() && param_propagate_down(1)) AddBiasSum(dy, blobs_[1]->device_diff());
    if (wants_bottom) {
      const Tensor w = ToBfloat16(blobs_[0]->device_data());
      bottom.device_diff().view({rows_, inputs_}).copy_(narrow_dy.mm(transpose_ ? w.t() : w));
    }
  }

  bool has_bias() const { return blobs_.size() > 1; }

  int64_t axis_ = 0, rows_ = 0, inputs_ = 0, outputs_ = 0;
  bool transpose_ = false;
  std::unique_ptr<Int8Product> int8_;  // used in Forward if the net's precision is int8
  Int8Product::Matrices int8_sizes_ = {};
};

}  // namespace

void RegisterInnerProduct(LayerRegistry& registry) {
  registry.Add<InnerProductLayer>("InnerProduct");
}

}  // namespace hearth::caffe
