// MemoryData: images and labels, from rows (source_class) or from arrays that the program sets.
#include <fmt/ranges.h>

#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/caffe/data/image_reader.h"
#include "hearth/caffe/data/row_values.h"
#include "hearth/caffe/layers/row_data.h"
#include "hearth/caffe/net/array_input.h"
#include "hearth/caffe/net/layer_registry.h"

namespace hearth::caffe {
namespace {

// Delivers images and labels from rows or arrays. The columns of rows are data (bytes, or numbers
// for pixels) and label; channels, height, width and encoded are optional.
class MemoryDataLayer : public RowDataLayer, public ArrayInput {
 public:
  MemoryDataLayer(const LayerParameter& param, const NetContext& context)
      : RowDataLayer(param, context),
        size_{param.memory_data_param().channels(), param.memory_data_param().height(),
              param.memory_data_param().width()},
        reader_(param.transform_param(), context.phase, size_, context.resize_images) {}
  ~MemoryDataLayer() override { StopFetching(); }

  LayerTraits traits() const override { return {.arity = {0, 0, 1, 2}}; }

  void SetUp(const Blobs& bottom, const Blobs& top) override {
    const ImageSize& out = reader_.output();
    std::vector<Top> tops = {{{out.channels, out.height, out.width}}};
    if (top.size() > 1) tops.push_back({{}});
    SetTops(param_.memory_data_param().batch_size(), std::move(tops));
  }

  void SetArrays(Tensor data, Tensor labels) override {
    const Shape shape = {size_.channels, size_.height, size_.width};
    const Shape given = data.sizes();
    Require(given.size() == 4 && Shape(given.begin() + 1, given.end()) == shape,
            ErrorCode::kInvalidArgument, "data of shape {} must be items x {} x {} x {}",
            fmt::join(given, " x "), shape[0], shape[1], shape[2]);
    Require(data.size(0) > 0 && data.size(0) % batch_size() == 0, ErrorCode::kInvalidArgument,
            "{} items are not a multiple of batch_size {}", data.size(0), batch_size());
    Require(labels.numel() == data.size(0), ErrorCode::kInvalidArgument,
            "{} labels for {} items: set one label per item", labels.numel(), data.size(0));
    data_ = std::move(data);
    labels_ = std::move(labels);
    next_item_ = 0;
  }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    if (is_fed() || !data_.defined()) {
      RowDataLayer::Reshape(bottom, top);
      return;
    }
    top[0]->Reshape({batch_size(), size_.channels, size_.height, size_.width});
    // The labels have four axes, because Caffe's Forward gives this shape to the labels of arrays.
    if (top.size() > 1) top[1]->Reshape({batch_size(), 1, 1, 1});
  }

  // Arrays are delivered unchanged, because transform_param applies only to rows.
  void Forward(const Blobs& bottom, const Blobs& top) override {
    if (is_fed()) {
      RowDataLayer::Forward(bottom, top);
      return;
    }
    Require(data_.defined(), ErrorCode::kInvalidArgument,
            "the layer has no data: set source_class to feed it rows, or set its arrays");
    // Copies the next batch of the arrays, which start over at the end. A batch never wraps,
    // because the number of items is a multiple of the batch size.
    std::copy_n(data_.data_ptr() + next_item_ * size_.count(), top[0]->count(), top[0]->data_ptr());
    if (top.size() > 1) {
      std::copy_n(labels_.data_ptr() + next_item_, batch_size(), top[1]->data_ptr());
    }
    next_item_ = (next_item_ + batch_size()) % data_.size(0);
  }

 protected:
  bool is_fed() const override { return RowDataLayer::is_fed() && param_.has_source_class(); }

  void ReadRow(const dataset::Minibatch::Row& row, uint64_t seed,
               const std::vector<float*>& tops) const override {
    if (tops.size() > 1) *tops[1] = NumberAt(ColumnWithValue(row, "label"), row.index);
    const batch::ColumnView& data = ColumnWithValue(row, "data");
    if (!HoldsBytes(data)) {
      std::vector<float> scratch;
      reader_.ReadFloats(data.FloatList(row.index, &scratch), RowSize(row), seed, tops[0]);
    } else if (IsEncoded(row)) {
      reader_.ReadEncoded(data.Bytes(row.index), seed, tops[0]);
    } else {
      reader_.ReadRaw(data.Bytes(row.index), RowSize(row), seed, tops[0]);
    }
  }

 private:
  static const batch::ColumnView* Given(const dataset::Minibatch::Row& row, std::string_view name) {
    const batch::ColumnView* column = row.batch->FindColumn(name);
    return column != nullptr && !column->IsNull(row.index) ? column : nullptr;
  }

  bool IsEncoded(const dataset::Minibatch::Row& row) const {
    const batch::ColumnView* column = Given(row, "encoded");
    return column != nullptr ? column->AsInt64(row.index) != 0
                             : param_.memory_data_param().image_encoded();
  }

  ImageSize RowSize(const dataset::Minibatch::Row& row) const {
    const auto number = [&row](std::string_view name, int64_t fallback) {
      const batch::ColumnView* column = Given(row, name);
      return column != nullptr ? column->AsInt64(row.index) : fallback;
    };
    const ImageSize size = {number("channels", size_.channels), number("height", size_.height),
                            number("width", size_.width)};
    // The sizes come from the data, so they are bounded before they are multiplied: (2^20)^3 fits
    // in 64 bits.
    constexpr int64_t kMost = 1 << 20;
    Require(std::min({size.channels, size.height, size.width}) > 0 &&
                std::max({size.channels, size.height, size.width}) <= kMost,
            ErrorCode::kDataLoss,
            "an image cannot have {} channels, height {} and width {}: each must be from 1 to {}",
            size.channels, size.height, size.width, kMost);
    return size;
  }

  const ImageSize size_;
  const ImageReader reader_;
  Tensor data_, labels_;
  int64_t next_item_ = 0;
};

}  // namespace

void RegisterMemoryData(LayerRegistry& registry) { registry.Add<MemoryDataLayer>("MemoryData"); }

}  // namespace hearth::caffe
