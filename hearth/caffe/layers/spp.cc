// SPP, spatial pyramid pooling: pools the bottom into 1 x 1, 2 x 2, 4 x 4, ... windows, so that
// images of any size have the same number of outputs.
#include "hearth/base/error.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"

namespace hearth::caffe {
namespace {

// The window along one axis that divides `size` values into `bins`, with padding on both sides if
// needed. As in Caffe, the kernel is the size divided by the bins, rounded up, and the padding is
// half of the excess, rounded up.
struct BinWindow {
  int64_t kernel, pad;

  BinWindow(int64_t size, int64_t bins)
      : kernel((size + bins - 1) / bins), pad((kernel * bins - size + 1) / 2) {
    Require(pad < kernel, ErrorCode::kInvalidArgument,
            "{} values cannot be divided into {} bins; use a smaller pyramid_height or a larger "
            "image",
            size, bins);
  }
};

class SppLayer : public Layer {
 public:
  using Layer::Layer;

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    Require(bottom[0]->num_axes() == 4, ErrorCode::kInvalidArgument,
            "SPP takes a bottom of 4 axes, not one of shape {}", bottom[0]->ShapeString());
    const int64_t height = bottom[0]->shape(2), width = bottom[0]->shape(3);
    // The windows depend on the images' size, so a new size needs new pooling layers.
    if (height != height_ || width != width_) MakeLevels(height, width);
    int64_t values = 0;
    for (const auto& level : levels_) {
      // Each Reshape shares the bottom's memory again, because it may have changed.
      level->bottom.ReshapeLike(*bottom[0]);
      level->bottom.ShareData(*bottom[0]);
      level->layer->Reshape({&level->bottom}, {&level->top});
      values += level->top.count(1);
    }
    if (levels_.size() == 1) {  // as in Caffe, a single level is not flattened
      top[0]->ReshapeLike(levels_[0]->top);
    } else {
      top[0]->Reshape({bottom[0]->shape(0), values});
    }
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    for (const auto& level : levels_) level->layer->Forward({&level->bottom}, {&level->top});
    ForEachPart(top[0]->device_data(), [](const Tensor& part, Level& level) {
      part.copy_(level.top.device_data().view(part.sizes()));
    });
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    if (!propagate_down[0]) return;
    bottom[0]->device_diff().zero_();
    ForEachPart(top[0]->device_diff(), [&](const Tensor& part, Level& level) {
      level.top.device_diff().view(part.sizes()).copy_(part);
      // Each level overwrites its own diff; the bottom's diff is the sum over the levels.
      level.layer->Backward({&level.top}, {true}, {&level.bottom});
      bottom[0]->device_diff().add_(level.bottom.device_diff());
    });
  }

 private:
  struct Level {
    std::unique_ptr<Layer> layer;
    Blob bottom, top;  // bottom shares the data, but has a separate gradient
  };

  void MakeLevels(int64_t height, int64_t width) {
    const SPPParameter& param = param_.spp_param();
    // Level i has 2^i bins along each axis.
    Require(param.pyramid_height() > 0 && param.pyramid_height() < 32, ErrorCode::kInvalidArgument,
            "spp_param needs pyramid_height, the number of levels, from 1 to 31, not {}",
            param.pyramid_height());
    levels_.clear();
    for (uint32_t i = 0; i < param.pyramid_height(); ++i) {
      const BinWindow rows(height, int64_t{1} << i), columns(width, int64_t{1} << i);
      LayerParameter pooling;
      pooling.set_type("Pooling");
      PoolingParameter* window = pooling.mutable_pooling_param();
      window->set_pool(static_cast<PoolingParameter::PoolMethod>(param.pool()));
      // Kernel and stride are equal, so the windows do not overlap.
      window->set_kernel_h(rows.kernel);
      window->set_stride_h(rows.kernel);
      window->set_pad_h(rows.pad);
      window->set_kernel_w(columns.kernel);
      window->set_stride_w(columns.kernel);
      window->set_pad_w(columns.pad);
      levels_.push_back(std::make_unique<Level>());
      levels_.back()->top.set_device(context().device);
      levels_.back()->layer = LayerRegistry::Default().Create(pooling, context());
    }
    height_ = height;
    width_ = width;
  }

  // Calls f(columns of the flattened top, the level they come from).
  template <typename Function>
  void ForEachPart(const Tensor& top, Function f) {
    const Tensor flat = top.view({top.size(0), -1});
    int64_t begin = 0;
    for (const auto& level : levels_) {
      const int64_t values = level->top.count(1);
      f(flat.narrow(1, begin, values), *level);
      begin += values;
    }
  }

  int64_t height_ = 0, width_ = 0;
  std::vector<std::unique_ptr<Level>> levels_;
};

}  // namespace

void RegisterSpp(LayerRegistry& registry) { registry.Add<SppLayer>("SPP"); }

}  // namespace hearth::caffe
