// Test helpers for nets and solvers: a layer that is fed by rows, and nets that use it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/net/net.h"
#include "hearth/caffe/upgrade/net_file.h"

namespace hearth::caffe {

// A layer of type "TestRows" that is fed by rows. An epoch has `height` rows, starting with row
// number `width`, in minibatches of batch_size. The three inputs and the target of row r are
// functions of r.
class TestRowsLayer : public Layer {
 public:
  using Layer::Layer;
  LayerTraits traits() const override { return {.arity = {0, 0, 2, 2}}; }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    const int64_t rows = fetched_ > 0 ? fetched_ : batch_size();
    top[0]->Reshape({rows, 3});
    top[1]->Reshape({rows, 1});
  }
  void Forward(const Blobs& bottom, const Blobs& top) override {
    for (int64_t i = 0; i < fetched_; ++i) {
      const auto row =
          static_cast<float>(param_.memory_data_param().width() + next_ - fetched_ + i);
      float* x = top[0]->data_ptr() + 3 * i;
      x[0] = std::sin(row);
      x[1] = std::cos(2 * row);
      x[2] = 0.1f * row;
      top[1]->data_ptr()[i] = std::sin(3 * row);
    }
  }
  void Backward(const Blobs&, const std::vector<bool>&, const Blobs&) override {}

  std::optional<int64_t> Fetch() override {
    fetched_ = std::min<int64_t>(batch_size(), param_.memory_data_param().height() - next_);
    next_ += fetched_;
    return fetched_;
  }
  void NextEpoch() override { next_ = 0; }

 private:
  int64_t batch_size() const { return param_.memory_data_param().batch_size(); }

  int64_t next_ = 0, fetched_ = 0;
};

inline const LayerRegistry& TestRegistry() {
  static const LayerRegistry registry = [] {
    LayerRegistry with_rows = LayerRegistry::Default();
    with_rows.Add<TestRowsLayer>("TestRows");
    return with_rows;
  }();
  return registry;
}

// A regression net for `rows` rows, starting at row `first`: two InnerProducts around a Sigmoid.
inline std::string RowsNet(int batch_size, int rows, int first = 0,
                           const std::string& middle = "") {
  return fmt::format(R"(
    layer {{ name: "rows" type: "TestRows" top: "x" top: "t"
             memory_data_param {{ batch_size: {} height: {} width: {} }} }}
    layer {{ name: "ip1" type: "InnerProduct" bottom: "x" top: "h"
             param {{ lr_mult: 1 }} param {{ lr_mult: 2 decay_mult: 0 }}
             inner_product_param {{ num_output: 4 weight_filler {{ type: "xavier" }} }} }}
    layer {{ name: "s" type: "Sigmoid" bottom: "h" top: "h" }}
    {}
    layer {{ name: "ip2" type: "InnerProduct" bottom: "h" top: "y"
             inner_product_param {{ num_output: 1 weight_filler {{ type: "xavier" }} }} }}
    layer {{ name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }})",
                     batch_size, rows, first, middle);
}

// Sets the inputs "x" and "y" to values between -1 and 1, which are the same every time.
inline void SetInputs(Net& net) {
  Random random(2);
  for (const char* input : {"x", "y"}) {
    Blob& blob = net.blob(input);
    for (int64_t i = 0; i < blob.count(); ++i) blob.data_ptr()[i] = random.Uniform(-1, 1);
  }
}

// Runs Forward and Backward on the inputs of SetInputs().
inline void Step(Net& net) {
  SetInputs(net);
  net.ClearParamDiffs();
  net.Forward();
  net.Backward();
}

inline NetContext ContextOf(Phase phase, uint64_t seed = 1) {
  NetContext context;
  context.phase = phase;
  context.random = std::make_shared<Random>(seed);
  return context;
}

}  // namespace hearth::caffe
