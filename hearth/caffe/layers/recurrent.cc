#include "hearth/caffe/layers/recurrent.h"

#include "hearth/base/error.h"
#include "hearth/caffe/kernels/bias_sum.h"
#include "hearth/caffe/kernels/matrix_product.h"
#include "hearth/caffe/tensor/device_ops.h"
#include "hearth/caffe/tensor/filler.h"
#include "hearth/caffe/tensor/parallel.h"

namespace hearth::caffe {
namespace {

constexpr int64_t kRowGrain = 8;  // rows per thread: smaller matrix products are slow

}  // namespace

RecurrentLayer::RecurrentLayer(const LayerParameter& param, const NetContext& context, int states,
                               int terms)
    : Layer(param, context), states_(states), terms_per_output_(terms) {
  outputs_ = param.recurrent_param().num_output();
  Require(outputs_ > 0, ErrorCode::kInvalidArgument,
          "recurrent_param needs num_output, the number of outputs per row and step");
  for (Blob* blob : {&terms_, &carried_, &static_terms_}) blob->set_device(context.device);
  for (Blob& state : states_) state.set_device(context.device);
}

LayerTraits RecurrentLayer::traits() const {
  const int exposed = exposes_states() ? static_cast<int>(states_.size()) : 0;
  return {.arity = {2 + exposed, 3 + exposed, 1 + exposed, 1 + exposed}, .never_forced = {1}};
}

std::shared_ptr<Blob> RecurrentLayer::MakeWeight(int64_t outputs, int64_t inputs) const {
  const FillerParameter& filler = param_.recurrent_param().weight_filler();
  return FilledBlob({outputs, inputs}, filler, *context().random);
}

std::shared_ptr<Blob> RecurrentLayer::MakeBias(int64_t outputs) const {
  return FilledBlob({outputs}, param_.recurrent_param().bias_filler(), *context().random);
}

void RecurrentLayer::SetUp(const Blobs& bottom, const Blobs& top) {
  has_static_ = static_cast<int>(bottom.size()) > traits().arity.min_bottoms;
  Require(bottom[0]->num_axes() >= 2, ErrorCode::kInvalidArgument,
          "the first bottom must be steps x rows x values, but has shape {}",
          bottom[0]->ShapeString());
  inputs_ = bottom[0]->count(2);
  const int64_t terms = terms_per_output_ * outputs_;
  // The parameters have Caffe's order, which .caffemodel files use.
  blobs_ = {MakeWeight(terms, inputs_), MakeBias(terms)};
  if (has_static_) {
    static_inputs_ = bottom[2]->count(1);
    blobs_.push_back(MakeWeight(terms, static_inputs_));
  }
  blobs_.push_back(MakeWeight(terms, outputs_));
}

void RecurrentLayer::Reshape(const Blobs& bottom, const Blobs& top) {
  const Blob& x = *bottom[0];
  Require(x.num_axes() >= 2 && x.shape(0) > 0 && x.count(2) == inputs_, ErrorCode::kInvalidArgument,
          "the weights take {} values per row and step, but the first bottom has shape {}", inputs_,
          x.ShapeString());
  steps_ = x.shape(0);
  rows_ = x.shape(1);
  Require(bottom[1]->shape() == Shape({steps_, rows_}), ErrorCode::kInvalidArgument,
          "the second bottom must have {} x {} continuation indicators, one per step and row, but "
          "has shape {}",
          steps_, rows_, bottom[1]->ShapeString());
  Require(!has_static_ || (bottom[2]->shape(0) == rows_ && bottom[2]->count(1) == static_inputs_),
          ErrorCode::kInvalidArgument,
          "the static input must be {} rows of {} values, but has shape {}", rows_, static_inputs_,
          has_static_ ? bottom[2]->ShapeString() : "");
  const Shape state{1, rows_, outputs_};
  for (size_t i = 0; i < states_.size(); ++i) {
    // Reshape() keeps the states' values, because the next minibatch continues the sequences whose
    // cont is 1 at step 0.
    states_[i].Reshape(state);
    if (!exposes_states()) continue;
    const Blob& given = *bottom[first_state_bottom() + i];
    Require(given.shape() == state, ErrorCode::kInvalidArgument,
            "the state in bottom {} must have shape {}, not {}", first_state_bottom() + i,
            states_[i].ShapeString(), given.ShapeString());
    top[1 + i]->Reshape(state);
  }
  top[0]->Reshape({steps_, rows_, outputs_});
  carried_.Reshape({steps_, rows_, outputs_});
  terms_.Reshape({steps_, rows_, terms_per_output_ * outputs_});
  if (has_static_) static_terms_.Reshape({rows_, terms_per_output_ * outputs_});
}

// terms [T * N, terms] = x [T * N, inputs] W_x^T + b. One product computes all steps, because
// inputs do not depend on states. The static input adds the same terms at every step.
void RecurrentLayer::ForwardInputs(const Blobs& bottom) {
  Tensor terms = terms_.device_data().view({steps_ * rows_, -1});
  const Tensor x = bottom[0]->device_data().view({steps_ * rows_, inputs_});
  Multiply(x, blobs_[0]->device_data().t(), blobs_[1]->device_data(), terms);
  if (!has_static_) return;
  const Tensor input = bottom[2]->device_data().view({rows_, static_inputs_});
  Multiply(input, blobs_[2]->device_data().t(), {}, static_terms_.device_data());
  // The terms of the static input are broadcast over the steps.
  terms_.device_data().add_(static_terms_.device_data());
}

// Without expose_hidden, the states after the previous minibatch remain, and the sequences whose
// cont is 1 at step 0 continue.
void RecurrentLayer::TakeStates(const Blobs& bottom) {
  if (!exposes_states()) return;
  for (size_t i = 0; i < states_.size(); ++i) {
    states_[i].device_data().copy_(bottom[first_state_bottom() + i]->device_data());
  }
}

void RecurrentLayer::ReturnStates(const Blobs& top) {
  if (!exposes_states()) return;
  for (size_t i = 0; i < states_.size(); ++i)
    top[1 + i]->device_data().copy_(states_[i].device_data());
}

// Computes each gradient by one product over all steps. D [T * N, terms] is the gradient of the
// sums:
//   dW_x = D^T x, db = the sum of D, dW_h = D^T carried, dx = D W_x.
void RecurrentLayer::BackwardInputs(const std::vector<bool>& propagate_down, const Blobs& bottom) {
  Require(!propagate_down[1], ErrorCode::kInvalidArgument,
          "{} has no gradient for its continuation indicators", type());
  const Tensor terms = terms_.device_diff().view({steps_ * rows_, -1});
  const Tensor x = bottom[0]->device_data().view({steps_ * rows_, inputs_});
  if (param_propagate_down(0)) AddProductToDiff(terms.t(), x, *blobs_[0]);
  if (param_propagate_down(1)) AddBiasSum(terms, blobs_[1]->device_diff());
  if (param_propagate_down(hidden_weight())) {
    AddProductToDiff(terms.t(), carried_.device_data().view({steps_ * rows_, outputs_}),
                     *blobs_[hidden_weight()]);
  }
  if (propagate_down[0]) {
    Tensor dx = bottom[0]->device_diff().view({steps_ * rows_, inputs_});
    Multiply(terms, blobs_[0]->device_data(), {}, dx);
  }
  if (has_static_) BackwardStatic(propagate_down[2], bottom[2]);
  // As in Caffe, the states before the first step get no gradient.
  for (size_t i = first_state_bottom(); i < bottom.size(); ++i) {
    if (propagate_down[i]) bottom[i]->device_diff().zero_();
  }
}

void RecurrentLayer::BackwardStatic(bool propagate_down, Blob* bottom) {
  const Tensor &sum = static_terms_.device_diff(), terms = terms_.device_diff();
  // The static input contributes to every step, so its gradient is the sum over steps.
  sum.copy_(terms[0]);
  for (int64_t t = 1; t < steps_; ++t) sum.add_(terms[t]);
  const Tensor input = bottom->device_data().view({rows_, static_inputs_});
  if (param_propagate_down(2)) AddProductToDiff(static_terms_.device_diff().t(), input, *blobs_[2]);
  if (!propagate_down) return;
  Tensor dx = bottom->device_diff().view({rows_, static_inputs_});
  Multiply(static_terms_.device_diff(), blobs_[2]->device_data(), {}, dx);
}

void RecurrentLayer::ForEachRowRange(const std::function<void(int64_t, int64_t)>& f) const {
  ParallelFor(0, rows_, kRowGrain, [&](int64_t begin, int64_t end) { f(begin, end); });
}

Tensor RecurrentLayer::Part(const Tensor& array, int64_t step, int64_t begin, int64_t end) {
  return array.select(0, step).narrow(0, begin, end - begin);
}

void RecurrentLayer::Continue(const float* cont, const float* from, const Tensor& to) const {
  // The rows of a step are adjacent in memory, so `to` is contiguous.
  float* out = to.data_ptr();
  for (int64_t row = 0; row < to.size(0); ++row) {
    for (int64_t i = 0; i < outputs_; ++i) *out++ = cont[row] * *from++;
  }
}

}  // namespace hearth::caffe
