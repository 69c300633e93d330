// Crop: cuts bottom 0 to the size of bottom 1 along `axis` and all later axes.
#include "hearth/base/error.h"
#include "hearth/caffe/net/layer_registry.h"

namespace hearth::caffe {
namespace {

class CropLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.arity = {2, 2, 1, 1}}; }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    const CropParameter& param = param_.crop_param();
    const Blob &x = *bottom[0], &reference = *bottom[1];
    const int64_t first = x.CanonicalAxis(param.axis());
    const auto& offsets = param.offset();
    Require(x.num_axes() <= reference.num_axes(), ErrorCode::kInvalidArgument,
            "the first bottom has shape {}, but the second, of shape {}, has fewer axes",
            x.ShapeString(), reference.ShapeString());
    Require(offsets.size() <= 1 || static_cast<int64_t>(offsets.size()) == x.num_axes() - first,
            ErrorCode::kInvalidArgument,
            "offset is given {} times; set it once, or once for each of the {} cropped axes",
            offsets.size(), x.num_axes() - first);
    Shape shape = x.shape();
    offset_.assign(shape.size(), 0);
    for (int64_t i = first; i < x.num_axes(); ++i) {
      // A single offset applies to all cropped axes.
      if (!offsets.empty()) offset_[i] = offsets[offsets.size() == 1 ? 0 : i - first];
      shape[i] = reference.shape(i);
      Require(offset_[i] + shape[i] <= x.shape(i), ErrorCode::kInvalidArgument,
              "offset {} + size {} exceeds axis {} of the bottom's shape {}", offset_[i], shape[i],
              i, x.ShapeString());
    }
    top[0]->Reshape(shape);
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    top[0]->device_data().copy_(Part(bottom[0]->device_data(), *top[0]));
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    if (propagate_down[0]) {
      // Values outside of the crop have gradient 0.
      bottom[0]->device_diff().zero_();
      Part(bottom[0]->device_diff(), *top[0]).copy_(top[0]->device_diff());
    }
    // Only the shape of bottom 1 is used, so its gradient is 0.
    if (propagate_down[1]) bottom[1]->device_diff().zero_();
  }

 private:
  Tensor Part(Tensor whole, const Blob& top) const {
    for (size_t i = 0; i < offset_.size(); ++i) {
      const auto axis = static_cast<int64_t>(i);
      whole = whole.narrow(axis, offset_[i], top.shape(axis));
    }
    return whole;
  }

  Shape offset_;
};

}  // namespace

void RegisterCrop(LayerRegistry& registry) { registry.Add<CropLayer>("Crop"); }

}  // namespace hearth::caffe
