// Layers without bottoms: Input (filled by the program), DummyData (by fillers) and Parameter (a
// learned blob).
#include "hearth/base/error.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/filler.h"

namespace hearth::caffe {
namespace {

// Base of layers without bottoms. SetUp or the program sets the shapes of the tops, so Reshape does
// nothing.
class SourceLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.arity = {0, 0, 1, Arity::kNoLimit}}; }
  void Reshape(const Blobs&, const Blobs&) override {}
  void Backward(const Blobs&, const std::vector<bool>&, const Blobs&) override {}
};

Shape ToShape(const BlobShape& shape) { return {shape.dim().begin(), shape.dim().end()}; }

// Sets the tops' shapes only in SetUp, because the program may change them later.
class InputLayer : public SourceLayer {
 public:
  using SourceLayer::SourceLayer;

  LayerTraits traits() const override {
    LayerTraits traits = SourceLayer::traits();
    traits.is_net_input = true;
    return traits;
  }

  void SetUp(const Blobs&, const Blobs& top) override {
    const std::vector<BlobShape>& shapes = param_.input_param().shape();
    Require(shapes.size() <= 1 || shapes.size() == top.size(), ErrorCode::kInvalidArgument,
            "input_param has {} shapes for {} tops: set one for all, or one per top", shapes.size(),
            top.size());
    for (size_t i = 0; i < top.size() && !shapes.empty(); ++i) {
      top[i]->Reshape(ToShape(shapes[shapes.size() == 1 ? 0 : i]));
    }
  }

  void Forward(const Blobs&, const Blobs&) override {}
};

class DummyDataLayer : public SourceLayer {
 public:
  using SourceLayer::SourceLayer;

  void SetUp(const Blobs&, const Blobs& top) override {
    const DummyDataParameter& param = param_.dummy_data_param();
    const size_t fillers = param.data_filler().size();
    Require(fillers <= 1 || fillers == top.size(), ErrorCode::kInvalidArgument,
            "dummy_data_param has {} data_fillers for {} tops: set none, one, or one per top",
            fillers, top.size());
    for (size_t i = 0; i < top.size(); ++i) {
      top[i]->Reshape(TopShape(param, i, top.size()));
      Fill(Filler(i), *top[i], *context().random);
    }
  }

  // A constant top is filled only once, even if the program writes other values into it.
  void Forward(const Blobs&, const Blobs& top) override {
    for (size_t i = 0; i < top.size(); ++i) {
      if (Filler(i).type() != "constant") Fill(Filler(i), *top[i], *context().random);
    }
  }

 private:
  const FillerParameter& Filler(size_t i) const {
    const std::vector<FillerParameter>& fillers = param_.dummy_data_param().data_filler();
    static const FillerParameter zero;
    if (fillers.empty()) return zero;
    return fillers[fillers.size() == 1 ? 0 : i];
  }

  static Shape TopShape(const DummyDataParameter& param, size_t i, size_t tops) {
    const auto pick = [&](const auto& values, const char* name) {
      Require(values.size() == 1 || values.size() == tops, ErrorCode::kInvalidArgument,
              "dummy_data_param has {} {} for {} tops: set one, or one per top", values.size(),
              name, tops);
      return values[values.size() == 1 ? 0 : i];
    };
    if (!param.shape().empty()) return ToShape(pick(param.shape(), "shape"));
    // The older fields num, channels, height and width describe four axes.
    return {pick(param.num(), "num"), pick(param.channels(), "channels"),
            pick(param.height(), "height"), pick(param.width(), "width")};
  }
};

class ParameterLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.arity = {0, 0, 1, 1}}; }

  void SetUp(const Blobs&, const Blobs&) override {
    blobs_ = {std::make_shared<Blob>(ToShape(param_.parameter_param().shape()))};
  }
  void Reshape(const Blobs&, const Blobs& top) override { top[0]->ReshapeLike(*blobs_[0]); }
  void Forward(const Blobs&, const Blobs& top) override { top[0]->data().copy_(blobs_[0]->data()); }
  void Backward(const Blobs& top, const std::vector<bool>&, const Blobs&) override {
    // Adds to the gradient, as all layers do for parameters. Caffe overwrites it, so that with
    // iter_size only the last pass counts.
    if (param_propagate_down(0)) blobs_[0]->diff().add_(top[0]->diff());
  }
};

}  // namespace

void RegisterInputData(LayerRegistry& registry) {
  registry.Add<DummyDataLayer>("DummyData");
  registry.Add<InputLayer>("Input");
  registry.Add<ParameterLayer>("Parameter");
}

}  // namespace hearth::caffe
