// RNN: hidden values h = tanh(W x + b + V h_before), outputs tanh(U h + c).
#include "hearth/caffe/kernels/bias_sum.h"
#include "hearth/caffe/kernels/matrix_product.h"
#include "hearth/caffe/kernels/vector_math.h"
#include "hearth/caffe/layers/neuron.h"
#include "hearth/caffe/layers/recurrent.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"

namespace hearth::caffe {
namespace {

class RnnLayer : public RecurrentLayer {
 public:
  RnnLayer(const LayerParameter& param, const NetContext& context)
      : RecurrentLayer(param, context, /*states=*/1, /*terms=*/1) {
    for (Blob* blob : {&hidden_, &output_}) blob->set_device(context.device);
  }

  void SetUp(const Blobs& bottom, const Blobs& top) override {
    RecurrentLayer::SetUp(bottom, top);
    blobs_.push_back(MakeWeight(outputs_, outputs_));
    blobs_.push_back(MakeBias(outputs_));
  }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    RecurrentLayer::Reshape(bottom, top);
    for (Blob* blob : {&hidden_, &output_}) blob->Reshape({steps_, rows_, outputs_});
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    ForwardInputs(bottom);
    TakeStates(bottom);
    const Tensor hidden = hidden_.device_data();
    on_device() ? StepsOnDevice(bottom[1]->device_data()) : Steps(bottom[1]->data_ptr());
    states_[0].device_data().copy_(hidden[steps_ - 1]);
    ReturnStates(top);

    // No step depends on earlier outputs, so one product computes the outputs of all steps.
    Tensor output = Flat(output_.device_data());
    Multiply(Flat(hidden), out_weight().device_data().t(), out_bias().device_data(), output);
    if (on_device()) {
      output.tanh_();
    } else {
      TanhOf(output.data_ptr(), output.data_ptr(), output.numel());
    }
    // The gradient of tanh needs the output, which a later layer may overwrite in the top.
    top[0]->device_data().copy_(output_.device_data());
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    // BackwardOutput() writes the outputs' contribution to the hidden values' gradient; the steps
    // add to it.
    BackwardOutput(*top[0]);
    on_device() ? StepsBackOnDevice(bottom[1]->device_data()) : StepsBack(bottom[1]->data_ptr());
    BackwardInputs(propagate_down, bottom);
  }

 private:
  void Steps(const float* cont) {
    // These arrays are allocated before threads use them, because a blob allocates on first use.
    const Tensor terms = terms_.data(), carried = carried_.data(), hidden = hidden_.data();
    const Tensor weight = blobs_[hidden_weight()]->data().t();
    const float* state = states_[0].data_ptr();
    ForEachRowRange([&](int64_t begin, int64_t end) {
      const float* before = state + begin * outputs_;
      for (int64_t t = 0; t < steps_; ++t) {
        const Tensor input = Part(carried, t, begin, end);
        Continue(cont + t * rows_ + begin, before, input);
        Tensor values = Part(hidden, t, begin, end);
        const Tensor sums = Part(terms, t, begin, end);
        AddProduct(1, input, weight, sums);
        TanhOf(sums.data_ptr(), values.data_ptr(), sums.numel());
        before = values.data_ptr();
      }
    });
  }

  void StepsOnDevice(const Tensor& cont) {
    const Tensor weight = blobs_[hidden_weight()]->device_data().t();
    const Tensor &hidden = hidden_.device_data(), &carried = carried_.device_data();
    Tensor before = states_[0].device_data()[0];
    for (int64_t t = 0; t < steps_; ++t) {
      carried[t].copy_(before * cont[t].unsqueeze(1));
      before = hidden[t];
      device::tanh_out(before, terms_.device_data()[t].addmm_(carried[t], weight));
    }
  }

  void StepsBackOnDevice(const Tensor& cont) {
    const Tensor &hidden = hidden_.device_data(), &d_hidden = hidden_.device_diff();
    const Tensor& weight = blobs_[hidden_weight()]->device_data();
    for (int64_t t = steps_ - 1; t >= 0; --t) {
      Tensor d_sums = terms_.device_diff()[t];
      device::tanh_backward_out(d_sums, d_hidden[t], hidden[t]);
      if (t > 0) d_hidden[t - 1].add_(d_sums.mm(weight).mul_(cont[t].unsqueeze(1)));
    }
  }

  // d_sums_t = d_hidden_t * (1 - h_t^2), d_hidden_(t-1) += cont_t * d_sums_t V. On entry, d_hidden
  // contains the outputs' contribution.
  void StepsBack(const float* cont) {
    const Tensor hidden = hidden_.data(), d_hidden = hidden_.diff();
    const Tensor d_terms = terms_.diff(), d_carried = carried_.diff();
    const Tensor& weight = blobs_[hidden_weight()]->data();
    ForEachRowRange([&](int64_t begin, int64_t end) {
      for (int64_t t = steps_ - 1; t >= 0; --t) {
        const Tensor d_sums = Part(d_terms, t, begin, end);
        Map(
            d_sums, [](float g, float h) { return g * (1 - h * h); }, Part(d_hidden, t, begin, end),
            Part(hidden, t, begin, end));
        // As in Caffe, the state before the first step gets no gradient.
        if (t == 0) break;
        Tensor d_before = Part(d_carried, t, begin, end);
        Multiply(d_sums, weight, {}, d_before);
        Continue(cont + t * rows_ + begin, d_before.data_ptr(), d_before);
        Part(d_hidden, t - 1, begin, end).add_(d_before);
      }
    });
  }

  Blob& out_weight() const { return *blobs_[hidden_weight() + 1]; }
  Blob& out_bias() const { return *blobs_[hidden_weight() + 2]; }
  Tensor Flat(const Tensor& array) const { return array.view({steps_ * rows_, outputs_}); }

  // Writes the outputs' contribution to hidden_'s gradient, and adds to the gradients of the
  // output's parameters.
  void BackwardOutput(Blob& top) {
    if (on_device()) {
      device::tanh_backward_out(output_.device_diff(), top.device_diff(), output_.device_data());
    } else {
      Map(
          output_.diff(), [](float g, float o) { return g * (1 - o * o); }, top.diff(),
          output_.data());
    }
    const Tensor d_sums = Flat(output_.device_diff());
    if (param_propagate_down(hidden_weight() + 1)) {
      AddProductToDiff(d_sums.t(), Flat(hidden_.device_data()), out_weight());
    }
    if (param_propagate_down(hidden_weight() + 2)) AddBiasSum(d_sums, out_bias().device_diff());
    Tensor d_hidden = Flat(hidden_.device_diff());
    Multiply(d_sums, out_weight().device_data(), {}, d_hidden);
  }

  Blob hidden_;
  Blob output_;  // a copy of the top, which a later layer may overwrite
};

}  // namespace

void RegisterRnn(LayerRegistry& registry) { registry.Add<RnnLayer>("RNN"); }

}  // namespace hearth::caffe
