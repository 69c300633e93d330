// Data: images and labels from the Datum records of a database.
#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/caffe/data/database/database.h"
#include "hearth/caffe/layers/image_file_data.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/proto/wire_reader.h"

namespace hearth::caffe {
namespace {

class DatabaseDataLayer : public ImageFileLayer {
 public:
  using ImageFileLayer::ImageFileLayer;
  ~DatabaseDataLayer() override { StopLoading(); }

  void SetUp(const Blobs&, const Blobs& top) override {
    const DataParameter& data = param_.data_param();
    Require(!data.source().empty(), ErrorCode::kInvalidArgument,
            "data_param has no source; set it to the database");
    set_batch_size(data.batch_size());
    cursor_ = OpenDatabase(data.backend(), data.source());
    Require(cursor_->valid(), ErrorCode::kInvalidArgument, "the database {} is empty",
            data.source());
    ShapeTops(ItemAtCursor(), top);
    if (data.rand_skip() > 0) {
      // All ranks skip the same number of records, so that their stripes stay disjoint. MoveOn()
      // does not count the skipped records as items.
      Random random(seed());
      for (uint64_t skip = random.Below(data.rand_skip()); skip > 0; --skip) MoveOn();
    }
  }

 protected:
  int prefetch() const override {
    constexpr uint32_t kMost = 64;  // bounds memory: minibatches are large
    return static_cast<int>(std::min(param_.data_param().prefetch(), kMost));
  }

  // Reads past the items of all ranks, because the cursor cannot seek to a record by its number.
  void Skip(int64_t items) override {
    for (; items > 0; --items) {
      FindMine();
      Advance();
    }
  }

  // Copies the record's bytes, because the cursor's bytes are valid only until it moves, and items
  // are decoded later, on several threads.
  Item TakeItem() override {
    FindMine();
    Item item = ItemAtCursor();
    Advance();
    return item;
  }

  Pixels Read(Item* item) const override {
    Datum datum;
    ParseWire(item->bytes, "its Datum", &datum);
    item->label = static_cast<float>(datum.label());
    return Pixels(std::move(datum), transformer().color_mode(0));
  }

 private:
  Item ItemAtCursor() const {
    return {number_,
            fmt::format("record '{}' of {}", cursor_->key(), param_.data_param().source()),
            std::string(cursor_->value()),
            {}};
  }

  // Moves to this rank's next item. Of N ranks, rank r reads items r, r + N, ...
  void FindMine() {
    while (!IsMine(number_)) Advance();
  }

  void Advance() {
    MoveOn();
    ++number_;
  }

  void MoveOn() {
    // After the last record, starts over with the first; item numbers keep counting.
    cursor_->Next();
    if (!cursor_->valid()) cursor_->SeekToFirst();
  }

  std::unique_ptr<DatabaseCursor> cursor_;
  uint64_t number_ = 0;  // of the item at the cursor
};

}  // namespace

void RegisterDatabaseData(LayerRegistry& registry) { registry.Add<DatabaseDataLayer>("Data"); }

}  // namespace hearth::caffe
