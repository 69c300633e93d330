// Concat joins blobs along one axis, and Slice splits a blob along one axis.
#include "hearth/base/error.h"
#include "hearth/caffe/net/layer_registry.h"

namespace hearth::caffe {
namespace {

Shape WithAxis(const Blob& blob, int64_t axis, int64_t size) {
  Shape shape = blob.shape();
  shape[axis] = size;
  return shape;
}

class ConcatLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    return {.arity = {1, Arity::kNoLimit, 1, 1}, .channels_last = ChannelsLast::kSame};
  }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    const ConcatParameter& param = param_.concat_param();
    // concat_dim is the older name of axis.
    axis_ = param.has_concat_dim() ? bottom[0]->CanonicalAxis(param.concat_dim())
                                   : bottom[0]->CanonicalAxis(param.axis());
    int64_t total = 0;
    for (const Blob* blob : bottom) {
      Require(blob->num_axes() == bottom[0]->num_axes() &&
                  WithAxis(*blob, axis_, 0) == WithAxis(*bottom[0], axis_, 0),
              ErrorCode::kInvalidArgument, "bottoms of shape {} and {} differ in more than axis {}",
              bottom[0]->ShapeString(), blob->ShapeString(), axis_);
      total += blob->shape(axis_);
    }
    top[0]->Reshape(WithAxis(*bottom[0], axis_, total));
    // As in Caffe, a single bottom shares its memory with the top, so Forward and Backward do
    // nothing.
    if (bottom.size() == 1) {
      top[0]->ShareData(*bottom[0]);
      top[0]->ShareDiff(*bottom[0]);
    }
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    if (bottom.size() == 1) return;
    int64_t begin = 0;
    for (Blob* blob : bottom) {
      top[0]->device_data().narrow(axis_, begin, blob->shape(axis_)).copy_(blob->device_data());
      begin += blob->shape(axis_);
    }
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    if (bottom.size() == 1) return;
    int64_t begin = 0;
    for (size_t i = 0; i < bottom.size(); ++i) {
      const int64_t size = bottom[i]->shape(axis_);
      if (propagate_down[i])
        bottom[i]->device_diff().copy_(top[0]->device_diff().narrow(axis_, begin, size));
      begin += size;
    }
  }

 private:
  int64_t axis_ = 1;
};

class SliceLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.arity = {1, 1, 1, Arity::kNoLimit}}; }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    const SliceParameter& param = param_.slice_param();
    // slice_dim is the older name of axis.
    axis_ = param.has_slice_dim() ? bottom[0]->CanonicalAxis(param.slice_dim())
                                  : bottom[0]->CanonicalAxis(param.axis());
    const std::vector<int64_t> sizes = Sizes(*bottom[0], static_cast<int64_t>(top.size()));
    for (size_t i = 0; i < top.size(); ++i) top[i]->Reshape(WithAxis(*bottom[0], axis_, sizes[i]));
    // As in Concat, a single top shares the bottom's memory.
    if (top.size() == 1) {
      top[0]->ShareData(*bottom[0]);
      top[0]->ShareDiff(*bottom[0]);
    }
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    if (top.size() == 1) return;
    int64_t begin = 0;
    for (Blob* blob : top) {
      blob->device_data().copy_(bottom[0]->device_data().narrow(axis_, begin, blob->shape(axis_)));
      begin += blob->shape(axis_);
    }
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    if (!propagate_down[0] || top.size() == 1) return;
    int64_t begin = 0;
    for (Blob* blob : top) {
      bottom[0]->device_diff().narrow(axis_, begin, blob->shape(axis_)).copy_(blob->device_diff());
      begin += blob->shape(axis_);
    }
  }

 private:
  // Returns the sizes of the tops along the axis: equal sizes, or sizes given by the slice_points,
  // which are the positions where tops 1, 2, ... begin.
  std::vector<int64_t> Sizes(const Blob& bottom, int64_t tops) const {
    const std::vector<uint32_t>& points = param_.slice_param().slice_point();
    const int64_t total = bottom.shape(axis_);
    if (points.empty()) {
      Require(total % tops == 0, ErrorCode::kInvalidArgument,
              "axis {} of shape {} cannot be divided into {} equal tops", axis_,
              bottom.ShapeString(), tops);
      return std::vector<int64_t>(tops, total / tops);
    }
    Require(static_cast<int64_t>(points.size()) == tops - 1, ErrorCode::kInvalidArgument,
            "{} slice_points make {} tops, but there are {}", points.size(), points.size() + 1,
            tops);
    std::vector<int64_t> sizes;
    int64_t begin = 0;
    for (int64_t i = 0; i < tops; ++i) {
      // The last top ends where the axis ends.
      const int64_t end = i < tops - 1 ? points[i] : total;
      Require(end > begin, ErrorCode::kInvalidArgument,
              "slice_points must increase and be above 0 and below {}, the size of axis {}", total,
              axis_);
      sizes.push_back(end - begin);
      begin = end;
    }
    return sizes;
  }

  int64_t axis_ = 1;
};

}  // namespace

void RegisterConcatSlice(LayerRegistry& registry) {
  registry.Add<ConcatLayer>("Concat");
  registry.Add<SliceLayer>("Slice");
}

}  // namespace hearth::caffe
