// CoSData, CaffeOnSpark's data layer: one top per column of a DataFrame.
#include "hearth/base/error.h"
#include "hearth/caffe/data/caffeonspark_top.h"
#include "hearth/caffe/layers/row_data.h"
#include "hearth/caffe/net/layer_registry.h"

namespace hearth::caffe {
namespace {

class CosDataLayer : public RowDataLayer {
 public:
  CosDataLayer(const LayerParameter& param, const NetContext& context)
      : RowDataLayer(param, context) {
    for (const auto& top : param.cos_data_param().top()) {
      columns_.emplace_back(top, context.phase, context.resize_images);
    }
  }
  ~CosDataLayer() override { StopFetching(); }

  LayerTraits traits() const override { return {.arity = {0, 0, 1, Arity::kNoLimit}}; }

  void SetUp(const Blobs& bottom, const Blobs& top) override {
    Require(columns_.size() == top.size(), ErrorCode::kInvalidArgument,
            "cos_data_param has {} tops, but the layer has {}", columns_.size(), top.size());
    // A transposed top is values x rows, the time-major order that LSTM reads.
    std::vector<Top> tops;
    for (const CaffeOnSparkTop& column : columns_)
      tops.push_back({column.row_shape(), column.transposed()});
    SetTops(param_.cos_data_param().batch_size(), std::move(tops));
  }

 protected:
  void ReadRow(const dataset::Minibatch::Row& row, uint64_t seed,
               const std::vector<float*>& tops) const override {
    for (size_t i = 0; i < columns_.size(); ++i) columns_[i].Read(row, seed, tops[i]);
  }

 private:
  std::vector<CaffeOnSparkTop> columns_;
};

}  // namespace

void RegisterCaffeonsparkData(LayerRegistry& registry) { registry.Add<CosDataLayer>("CoSData"); }

}  // namespace hearth::caffe
