// LSTM over whole sequences, and LSTMUnit, a single step whose sums another layer computes.
#include "hearth/base/error.h"
#include "hearth/caffe/kernels/lstm_device.h"
#include "hearth/caffe/kernels/lstm_step.h"
#include "hearth/caffe/kernels/matrix_product.h"
#include "hearth/caffe/layers/recurrent.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"

namespace hearth::caffe {
namespace {

// LstmStep with ATen's kernels. `cont` is rows x 1, `gates` rows x 4 * size, the others rows x
// size.
struct DeviceLstmStep {
  Tensor cont, gates, before, cells, squashed, hidden;

  void Forward() {
    gates.narrow(1, 0, 3 * before.size(1)).sigmoid_();
    const std::vector<Tensor> parts = gates.chunk(4, 1);
    const Tensor &i = parts[0], &f = parts[1].mul_(cont), &o = parts[2], &g = parts[3].tanh_();
    cells.copy_(f * before).addcmul_(i, g);
    device::tanh_out(squashed, cells);
    device::mul_out(hidden, o, squashed);
  }

  // Like LstmStep::Backward(). Changes `d_cells` in place.
  void Backward(const Tensor& d_hidden, const Tensor& d_cells, const Tensor& d_gates) const {
    const std::vector<Tensor> parts = gates.chunk(4, 1), diffs = d_gates.chunk(4, 1);
    const Tensor &i = parts[0], &f = parts[1], &o = parts[2], &g = parts[3];
    d_cells.add_(d_hidden * o * (1 - squashed * squashed));
    diffs[0].copy_(d_cells * g * i * (1 - i));
    diffs[1].copy_(d_cells * before * f * (1 - f));
    diffs[2].copy_(d_hidden * squashed * o * (1 - o));
    diffs[3].copy_(d_cells * i * (1 - g * g));
    d_cells.mul_(f);
  }
};

// Caffe's LSTM, computed directly instead of by an unrolled net. For steps t of N rows, with 4H
// sums per row in the order i, f, o, g:
//   sums_t = W_x x_t + b + W_s static + W_h (cont_t * h_(t-1))
//   i, f, o = sigmoid(sums), g = tanh(sums)
//   c_t = cont_t * f * c_(t-1) + i * g, h_t = o * tanh(c_t)
// terms_ contains the sums; each step replaces its sums by the gates.
class LstmLayer : public RecurrentLayer {
 public:
  LstmLayer(const LayerParameter& param, const NetContext& context)
      : RecurrentLayer(param, context, /*states=*/2, /*terms=*/4) {
    for (Blob* blob : {&cells_, &squashed_}) blob->set_device(context.device);
  }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    RecurrentLayer::Reshape(bottom, top);
    cells_.Reshape({steps_ + 1, rows_, outputs_});
    squashed_.Reshape({steps_, rows_, outputs_});
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    ForwardInputs(bottom);
    TakeStates(bottom);
    cells_.device_data()[0].copy_(states_[1].device_data()[0]);
    on_device() ? StepsOnDevice(bottom, top) : Steps(bottom, top);
    states_[0].device_data().copy_(top[0]->device_data()[steps_ - 1]);
    states_[1].device_data().copy_(cells_.device_data()[steps_]);
    ReturnStates(top);
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    on_device() ? StepsBackOnDevice(bottom, top) : StepsBack(bottom, top);
    BackwardInputs(propagate_down, bottom);
  }

 private:
  void Steps(const Blobs& bottom, const Blobs& top) {
    const Sequence sequence = Arrays(bottom, top);
    const Tensor gates = terms_.data(), carried = carried_.data();
    const Tensor weight = blobs_[hidden_weight()]->data().t();
    const float* state = states_[0].data_ptr();
    // Each thread computes all steps of its rows. Rows are independent, so no step waits for other
    // threads.
    ForEachRowRange([&](int64_t begin, int64_t end) {
      const float* hidden = state + begin * outputs_;
      for (int64_t t = 0; t < steps_; ++t) {
        const LstmStep step = sequence.At(t, begin, end);
        const Tensor input = Part(carried, t, begin, end);
        Continue(step.cont, hidden, input);
        AddProduct(1, input, weight, Part(gates, t, begin, end));
        step.Forward();
        hidden = step.hidden;
      }
    });
  }

  void StepsBack(const Blobs& bottom, const Blobs& top) {
    const Sequence sequence = Arrays(bottom, top);
    const Tensor gates_diff = terms_.diff(), top_diff = top[0]->diff();
    // Gradients that later steps contribute to the hidden values and the cells.
    d_states_.Reshape({2, rows_, outputs_});
    // These gradients are zero at the last step, because Caffe ignores the gradient of the exposed
    // states.
    const Tensor d_states = d_states_.data().zero_();
    const Tensor& weight = blobs_[hidden_weight()]->data();
    ForEachRowRange([&](int64_t begin, int64_t end) {
      Tensor d_hidden = Part(d_states, 0, begin, end);
      float* d_cells = Part(d_states, 1, begin, end).data_ptr();
      for (int64_t t = steps_ - 1; t >= 0; --t) {
        const LstmStep step = sequence.At(t, begin, end);
        const Tensor d_gates = Part(gates_diff, t, begin, end);
        d_hidden.add_(Part(top_diff, t, begin, end));
        step.Backward(d_hidden.data_ptr(), d_cells, d_gates.data_ptr());
        // As in Caffe, the states before the first step get no gradient.
        if (t == 0) break;
        Multiply(d_gates, weight, {}, d_hidden);
        Continue(step.cont, d_hidden.data_ptr(), d_hidden);
      }
    });
  }

  DeviceLstmStep DeviceStep(int64_t t, const Blobs& bottom, const Blobs& top) {
    const Tensor& cells = cells_.device_data();
    return {bottom[1]->device_data()[t].unsqueeze(1),
            terms_.device_data()[t],
            cells[t],
            cells[t + 1],
            squashed_.device_data()[t],
            top[0]->device_data()[t]};
  }

  DeviceLstmArrays DeviceArrays(const Blobs& bottom, const Blobs& top) {
    return {steps_,
            rows_,
            outputs_,
            blobs_[hidden_weight()]->device_data(),
            bottom[1]->device_data_to_read(),
            terms_.device_data(),
            cells_.device_data(),
            squashed_.device_data(),
            top[0]->device_data(),
            carried_.device_data()};
  }

  void StepsOnDevice(const Blobs& bottom, const Blobs& top) {
    if (LstmForward(DeviceArrays(bottom, top), states_[0].device_data())) return;
    const Tensor weight = blobs_[hidden_weight()]->device_data().t();
    Tensor hidden = states_[0].device_data()[0];
    for (int64_t t = 0; t < steps_; ++t) {
      DeviceLstmStep step = DeviceStep(t, bottom, top);
      Tensor carried = carried_.device_data()[t];
      device::mul_out(carried, hidden, step.cont);
      step.gates.addmm_(carried, weight);
      step.Forward();
      hidden = step.hidden;
    }
  }

  void StepsBackOnDevice(const Blobs& bottom, const Blobs& top) {
    const Tensor top_diff = top[0]->device_diff();
    if (LstmBackward(DeviceArrays(bottom, top), top_diff, terms_.device_diff())) return;
    const Tensor& weight = blobs_[hidden_weight()]->device_data();
    Tensor d_hidden = device::zeros_like(top_diff[0]), d_cells = device::zeros_like(d_hidden);
    for (int64_t t = steps_ - 1; t >= 0; --t) {
      const DeviceLstmStep step = DeviceStep(t, bottom, top);
      const Tensor d_gates = terms_.device_diff()[t];
      step.Backward(d_hidden.add_(top_diff[t]), d_cells, d_gates);
      if (t > 0) d_hidden = d_gates.mm(weight).mul_(step.cont);
    }
  }

  // The arrays of all steps. They are allocated before threads use them, because a blob allocates
  // on first use.
  struct Sequence {
    int64_t rows, size;
    const float* cont;
    float *gates, *cells, *squashed, *hidden;

    LstmStep At(int64_t step, int64_t begin, int64_t end) const {
      const int64_t first = step * rows + begin, at = first * size;
      return {end - begin,    size,       cont + first,
              gates + 4 * at, cells + at, cells + at + rows * size,
              squashed + at,  hidden + at};
    }
  };
  Sequence Arrays(const Blobs& bottom, const Blobs& top) {
    return {rows_,
            outputs_,
            bottom[1]->data_ptr(),
            terms_.data_ptr(),
            cells_.data_ptr(),
            squashed_.data_ptr(),
            top[0]->data_ptr()};
  }

  Blob cells_;     // steps + 1 entries: the first contains the cells before the first step
  Blob squashed_;  // tanh of cells_, without the first entry
  Blob d_states_;
};

// A single step of LSTM. Bottoms: cells of the previous step, sums of the gates, cont; tops: cells,
// hidden values.
class LstmUnitLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.arity = {3, 3, 2, 2}, .never_forced = {2}}; }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    const Blob& before = *bottom[0];
    const bool is_step = before.num_axes() == 3 && before.shape(0) == 1;
    Require(is_step && bottom[1]->shape() == Shape({1, before.shape(1), 4 * before.shape(2)}) &&
                bottom[2]->shape() == Shape({1, before.shape(1)}),
            ErrorCode::kInvalidArgument,
            "LSTMUnit takes bottoms of shapes 1 x rows x cells, 1 x rows x 4 cells and 1 x rows, "
            "not {}, {} and {}",
            before.ShapeString(), bottom[1]->ShapeString(), bottom[2]->ShapeString());
    for (Blob* blob : {top[0], top[1], &squashed_}) blob->ReshapeLike(before);
    gates_.ReshapeLike(*bottom[1]);
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    if (on_device()) {
      gates_.device_data().copy_(bottom[1]->device_data());
      DeviceStep(bottom, top).Forward();
      return;
    }
    // The step overwrites the sums by the gates, but the bottom must not change.
    gates_.data().copy_(bottom[1]->data());
    Step(bottom, top).Forward();
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    Require(!propagate_down[2], ErrorCode::kInvalidArgument,
            "LSTMUnit has no gradient for its continuation indicators");
    if (!propagate_down[0] && !propagate_down[1]) return;
    // Both gradients are computed in one loop; an unrequested one is discarded.
    Blob& d_before = propagate_down[0] ? *bottom[0] : squashed_;
    Blob& d_gates = propagate_down[1] ? *bottom[1] : gates_;
    if (on_device()) {
      const Tensor d_cells = d_before.device_diff()[0].copy_(top[0]->device_diff()[0]);
      DeviceStep(bottom, top).Backward(top[1]->device_diff()[0], d_cells, d_gates.device_diff()[0]);
      return;
    }
    d_before.diff().copy_(top[0]->diff());
    Step(bottom, top).Backward(top[1]->diff_ptr(), d_before.diff_ptr(), d_gates.diff_ptr());
  }

 private:
  LstmStep Step(const Blobs& bottom, const Blobs& top) {
    return {bottom[0]->shape(1),   bottom[0]->shape(2), bottom[2]->data_ptr(), gates_.data_ptr(),
            bottom[0]->data_ptr(), top[0]->data_ptr(),  squashed_.data_ptr(),  top[1]->data_ptr()};
  }

  DeviceLstmStep DeviceStep(const Blobs& bottom, const Blobs& top) {
    return {bottom[2]->device_data()[0].unsqueeze(1),
            gates_.device_data()[0],
            bottom[0]->device_data()[0],
            top[0]->device_data()[0],
            squashed_.device_data()[0],
            top[1]->device_data()[0]};
  }

  Blob gates_, squashed_;
};

}  // namespace

void RegisterLstm(LayerRegistry& registry) {
  registry.Add<LstmLayer>("LSTM");
  registry.Add<LstmUnitLayer>("LSTMUnit");
}

}  // namespace hearth::caffe
