#include "hearth/caffe/layers/image_file_data.h"

#include <fmt/ranges.h>

#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/for_each.h"

namespace hearth::caffe {
namespace {

// If more than this many images of a minibatch are invalid, the source probably contains no images.
constexpr size_t kMaxInvalidItems = 1000;

}  // namespace

ImageFileLayer::ImageFileLayer(const LayerParameter& param, const NetContext& context)
    : FileDataLayer(param, context), transformer_(param.transform_param(), context.phase) {}

Shape ImageFileLayer::ShapeOf(const Pixels& pixels) const {
  const ImageSize size = pixels.size();
  return {batch_size(), size.channels, transformer_.OutputSize(size.height),
          transformer_.OutputSize(size.width)};
}

void ImageFileLayer::ShapeTops(Item first, const Blobs& top) const {
  try {
    top[0]->Reshape(ShapeOf(Read(&first)));
  } catch (const Error& error) {
    throw Error(error.code(), first.name, error);
  }
  if (top.size() > 1) top[1]->Reshape({batch_size()});
}

// For an invalid image, returns false if invalid rows are reported, else throws.
bool ImageFileLayer::ReadInto(Item* item, int64_t row, DataBatch* batch,
                              std::string* reason) const {
  DataBatch::Top& data = batch->tops[0];
  try {
    const Pixels pixels = Read(item);
    const ImageSize size = pixels.size();
    transformer_.RequireFits(size.channels, size.height, size.width);
    const Shape shape = ShapeOf(pixels);
    if (row == 0) data.Reshape(shape);
    Require(shape == data.shape, ErrorCode::kDataLoss,
            "an image of {} does not fit into a minibatch of {}; make all images the same size, or "
            "set crop_size or batch_size: 1",
            fmt::join(shape.begin() + 1, shape.end(), " x "), fmt::join(data.shape, " x "));
    const auto stride = static_cast<int64_t>(data.values.size()) / batch_size();
    pixels.Transform(transformer_, MixSeed(seed(), item->number), &data.values[row * stride]);
    batch->tops[1].values[row] = item->label;
    return true;
  } catch (const Error& error) {
    const std::string what = fmt::format("{}: {}", item->name, error.message());
    // Only invalid data is skipped; a file that is missing or cannot be reached stops the run.
    if (error.code() != ErrorCode::kDataLoss || !context().on_invalid_row) {
      throw Error(error.code(), what);
    }
    *reason = error.message();
    return false;
  }
}

void ImageFileLayer::LoadBatch(DataBatch* batch) {
  batch->tops.resize(2);
  batch->tops[1].Reshape({batch_size()});
  // This thread calls TakeItem() for all items, then several threads decode them. Invalid items are
  // replaced one by one in the order of the rows, so that the batch does not depend on the number
  // of threads.
  std::vector<Item> items(batch_size());
  for (Item& item : items) item = TakeItem();
  std::vector<std::string> reasons(items.size());
  const auto read = [&](int64_t row) { return ReadInto(&items[row], row, batch, &reasons[row]); };
  const auto replace = [&](int64_t row) {
    Require(batch->invalid_rows.size() < kMaxInvalidItems, ErrorCode::kDataLoss,
            "{} images of one minibatch are invalid, the last one because: {}", kMaxInvalidItems,
            reasons[row]);
    batch->invalid_rows.push_back({items[row].name, std::exchange(reasons[row], "")});
    items[row] = TakeItem();
  };
  // The first image determines the minibatch's shape.
  while (!read(0)) replace(0);
  ForEach(batch_size() - 1, context().transform_threads, [&](int64_t i) { read(i + 1); });
  for (int64_t row = 1; row < batch_size(); ++row) {
    if (reasons[row].empty()) continue;
    do {
      replace(row);
    } while (!read(row));
  }
}

}  // namespace hearth::caffe
