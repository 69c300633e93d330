// Tile: the bottom repeated along one axis.
#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/all_layers.h"

namespace hearth::caffe {
namespace {

class TileLayer : public Layer {
 public:
  TileLayer(const LayerParameter& param, const NetContext& context)
      : Layer(param, context), tiles_(param.tile_param().tiles()) {
    Require(tiles_ > 0, ErrorCode::kInvalidArgument,
            "tile_param needs tiles, the number of copies, above 0, not {}", tiles_);
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
    const float* x = bottom[0]->data_ptr();
    float* y = top[0]->data_ptr();
    for (int64_t i = 0; i < outer_; ++i, x += inner_) {
      for (int64_t tile = 0; tile < tiles_; ++tile) y = std::copy_n(x, inner_, y);
    }
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    if (!propagate_down[0]) return;
    const float* dy = top[0]->diff_ptr();
    float* dx = bottom[0]->diff_ptr();
    for (int64_t i = 0; i < outer_; ++i, dx += inner_) {
      std::copy_n(dy, inner_, dx);
      dy += inner_;
      for (int64_t tile = 1; tile < tiles_; ++tile, dy += inner_) {
        for (int64_t j = 0; j < inner_; ++j) dx[j] += dy[j];
      }
    }
  }

 private:
  const int64_t tiles_;
  int64_t outer_ = 0, inner_ = 0;
};

}  // namespace

void RegisterTile(LayerRegistry& registry) { registry.Add<TileLayer>("Tile"); }

}  // namespace hearth::caffe
