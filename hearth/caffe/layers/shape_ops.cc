// Layers that do not change values: Split, Flatten, Reshape, Silence.
#include "hearth/base/error.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"
#include "hearth/caffe/tensor/shape_count.h"

namespace hearth::caffe {
namespace {

// Passes one bottom to several readers: they share the data, and their gradients are summed. Nets
// insert a Split wherever several layers read a blob, because each of these layers overwrites the
// blob's diff.
class SplitLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    return {.arity = {1, 1, 1, Arity::kNoLimit}, .channels_last = ChannelsLast::kSame};
  }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    for (Blob* blob : top) {
      blob->ReshapeLike(*bottom[0]);
      blob->ShareData(*bottom[0]);
    }
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {}

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    if (!propagate_down[0]) return;
    Tensor& dx = bottom[0]->device_diff();
    dx.copy_(top[0]->device_diff());
    for (size_t i = 1; i < top.size(); ++i) dx.add_(top[i]->device_diff());
  }
};

// The top is the bottom's memory under another shape. Data and diff are shared, so Forward and
// Backward do nothing. Running in place would change the shape of a blob that other layers use, so
// it is an error, as in Caffe.
class ViewLayer : public Layer {
 public:
  using Layer::Layer;

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    top[0]->Reshape(NewShape(*bottom[0]));
    Require(top[0]->count() == bottom[0]->count(), ErrorCode::kInvalidArgument,
            "{} values of shape {} cannot take the shape {}", bottom[0]->count(),
            bottom[0]->ShapeString(), top[0]->ShapeString());
    top[0]->ShareData(*bottom[0]);
    top[0]->ShareDiff(*bottom[0]);
  }
  void Forward(const Blobs&, const Blobs&) override {}
  void Backward(const Blobs&, const std::vector<bool>&, const Blobs&) override {}

 protected:
  virtual Shape NewShape(const Blob& bottom) const = 0;
};

class FlattenLayer : public ViewLayer {
 public:
  using ViewLayer::ViewLayer;

 protected:
  Shape NewShape(const Blob& bottom) const override {
    const FlattenParameter& param = param_.flatten_param();
    const int64_t first = bottom.CanonicalAxis(param.axis());
    const int64_t last = bottom.CanonicalAxis(param.end_axis());
    Require(first <= last, ErrorCode::kInvalidArgument, "axis {} comes after end_axis {}",
            param.axis(), param.end_axis());
    Shape shape(bottom.shape().begin(), bottom.shape().begin() + first);
    shape.push_back(bottom.count(first, last + 1));
    shape.insert(shape.end(), bottom.shape().begin() + last + 1, bottom.shape().end());
    return shape;
  }
};

// reshape_param replaces num_axes axes from `axis` on by `shape`, in which 0 copies the bottom's
// dimension at the same position, and one -1 is inferred.
class ReshapeLayer : public ViewLayer {
 public:
  using ViewLayer::ViewLayer;

 protected:
  Shape NewShape(const Blob& bottom) const override {
    const ReshapeParameter& param = param_.reshape_param();
    const int64_t axes = bottom.num_axes();
    // Here, an axis of -1 is the position after the last axis, so that new axes can be appended.
    const int64_t begin = param.axis() >= 0 ? param.axis() : axes + param.axis() + 1;
    const int64_t end = param.num_axes() == -1 ? axes : begin + param.num_axes();
    Require(begin >= 0 && begin <= end && end <= axes, ErrorCode::kInvalidArgument,
            "axis {} and num_axes {} are not within shape {}", param.axis(), param.num_axes(),
            bottom.ShapeString());
    Shape shape(bottom.shape().begin(), bottom.shape().begin() + begin);
    int64_t inferred = -1;
    for (const int64_t dim : param.shape().dim()) {
      const auto position = static_cast<int64_t>(shape.size());
      Require(dim >= -1 && (dim != 0 || position < axes) && (dim != -1 || inferred < 0),
              ErrorCode::kInvalidArgument,
              "dim {} is invalid at position {} for a bottom of shape {}", dim, position,
              bottom.ShapeString());
      if (dim == -1) inferred = position;
      // The inferred dimension counts as 1 in the product of the others.
      shape.push_back(dim == 0 ? bottom.shape(position) : dim == -1 ? 1 : dim);
    }
    shape.insert(shape.end(), bottom.shape().begin() + end, bottom.shape().end());
    if (inferred >= 0) Infer(bottom, inferred, &shape);
    return shape;
  }

 private:
  static void Infer(const Blob& bottom, int64_t position, Shape* shape) {
    const int64_t known = CountOf(*shape).value_or(0);
    Require(
        known > 0 && bottom.count() % known == 0, ErrorCode::kInvalidArgument,
        "the -1 at position {} cannot be inferred: {} values of shape {} are not a multiple of {}",
        position, bottom.count(), bottom.ShapeString(), known);
    (*shape)[position] = bottom.count() / known;
  }
};

// Consumes bottoms that no other layer reads, so that they are not outputs of the net.
class SilenceLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.arity = {1, Arity::kNoLimit, 0, 0}}; }
  void Reshape(const Blobs&, const Blobs&) override {}
  void Forward(const Blobs&, const Blobs&) override {}
  void Backward(const Blobs&, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    for (size_t i = 0; i < bottom.size(); ++i) {
      // If another layer also reads the bottom, the bottom needs a gradient; this layer contributes
      // 0.
      if (propagate_down[i]) bottom[i]->device_diff().zero_();
    }
  }
};

}  // namespace

void RegisterShapeOps(LayerRegistry& registry) {
  registry.Add<FlattenLayer>("Flatten");
  registry.Add<ReshapeLayer>("Reshape");
  registry.Add<SilenceLayer>("Silence");
  registry.Add<SplitLayer>("Split");
}

}  // namespace hearth::caffe
