#pragma once

#include <functional>

#include "hearth/caffe/net/layer.h"

namespace hearth::caffe {

// Base of LSTM and RNN. Defines the bottoms and tops of Caffe's recurrent layers, computes the
// contribution of the inputs for all steps at once, and keeps the states from one minibatch to the
// next.
//
// Bottoms: x (steps x rows x ...), cont (steps x rows; 0 where a sequence begins), optionally a
// static input (rows x ...) and, with expose_hidden, the states before the first step. Tops: the
// output of every step and, with expose_hidden, the states after the last.
class RecurrentLayer : public Layer {
 public:
  // `states`: number of arrays that are passed from step to step, with num_output values per row;
  // the hidden values come first. `terms`: number of sums per output to which the inputs and the
  // hidden values contribute.
  RecurrentLayer(const LayerParameter& param, const NetContext& context, int states, int terms);

  LayerTraits traits() const override;
  void SetUp(const Blobs& bottom, const Blobs& top) override;
  void Reshape(const Blobs& bottom, const Blobs& top) override;

 protected:
  // Order of the parameters: weights of x, bias, weights of the static input (if there is one),
  // weights of the hidden values. A layer may append others.
  size_t hidden_weight() const { return has_static_ ? 3 : 2; }
  std::shared_ptr<Blob> MakeWeight(int64_t outputs, int64_t inputs) const;
  std::shared_ptr<Blob> MakeBias(int64_t outputs) const;

  // Call before the steps: computes the inputs' contribution to terms_ and the states before the
  // first step.
  void ForwardInputs(const Blobs& bottom);
  void TakeStates(const Blobs& bottom);
  // Call after the last step: copies the final states from states_ to the tops.
  void ReturnStates(const Blobs& top);
  // Computes gradients from the gradient of terms_: of the bottoms, and of the parameters up to and
  // including the hidden values' weights.
  void BackwardInputs(const std::vector<bool>& propagate_down, const Blobs& bottom);

  // Calls f(begin, end) for ranges of rows, several at a time. f processes rows [begin, end)
  // through all steps, because rows are independent.
  void ForEachRowRange(const std::function<void(int64_t, int64_t)>& f) const;
  // Returns rows [begin, end) at one step of an array of steps x rows x values.
  static Tensor Part(const Tensor& array, int64_t step, int64_t begin, int64_t end);
  // to = cont * from, row by row.
  void Continue(const float* cont, const float* from, const Tensor& to) const;

  int64_t steps_ = 0, rows_ = 0, outputs_ = 0;
  Blob terms_;                // steps x rows x (terms * outputs)
  Blob carried_;              // steps x rows x outputs: cont * the previous step's hidden
                              // values
  std::vector<Blob> states_;  // rows x outputs, kept from minibatch to minibatch

 private:
  bool exposes_states() const { return param_.recurrent_param().expose_hidden(); }
  size_t first_state_bottom() const { return has_static_ ? 3 : 2; }
  void BackwardStatic(bool propagate_down, Blob* bottom);

  const int64_t terms_per_output_;
  bool has_static_ = false;
  int64_t inputs_ = 0, static_inputs_ = 0;
  Blob static_terms_;  // rows x (terms * outputs)
};

}  // namespace hearth::caffe
