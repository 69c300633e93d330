// Tile: the bottom repeated along one axis.
#include "hearth/base/error.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"

namespace hearth::caffe {
namespace {

class TileLayer : public Layer {
 public:
  TileLayer(const LayerParameter& param, const NetContext& context)
      : Layer(param, context), tiles_(param.tile_param().tiles()) {
    Require(tiles_ > 0, ErrorCode::kInvalidArgument,
            "tiles in tile_param, the number of copies, is {}; it must be above 0", tiles_);
  }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    const int64_t axis = bottom[0]->CanonicalAxis(param_.tile_param().axis());
    Shape shape = bottom[0]->shape();
    shape[axis] *= tiles_;
    top[0]->Reshape(shape);
    outer_ = bottom[0]->count(0, axis);
    inner_ = bottom[0]->count(axis);
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    const Tensor once = bottom[0]->device_data().view({outer_, 1, inner_});
    Tiles(top[0]->device_data()).copy_(once.expand({outer_, tiles_, inner_}));
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    if (!propagate_down[0]) return;
    Tensor dx = bottom[0]->device_diff().view({outer_, inner_});
    const Tensor dy = Tiles(top[0]->device_diff());
    // A value's gradient is the sum over its copies.
    dx.copy_(dy.select(1, 0));
    for (int64_t i = 1; i < tiles_; ++i) dx.add_(dy.select(1, i));
  }

 private:
  Tensor Tiles(const Tensor& top) const { return top.view({outer_, tiles_, inner_}); }

  const int64_t tiles_;
  int64_t outer_ = 0, inner_ = 0;
};

}  // namespace

void RegisterTile(LayerRegistry& registry) { registry.Add<TileLayer>("Tile"); }

}  // namespace hearth::caffe
