#include "hearth/caffe/layers/file_data.h"

#include <algorithm>
#include <utility>

#include "hearth/base/error.h"

namespace hearth::caffe {
namespace {

// Hashes a layer's name. The hash is part of the layer's seed, so that the layers of a net draw
// different numbers. FNV-1a is the same on every machine, unlike std::hash.
uint64_t HashOf(const std::string& name) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
  return hash;
}

}  // namespace

// The source of the prefetched batches. Its first call also skips the items that a resumed run has
// already used.
class FileDataLayer::Batches : public BatchSource {
 public:
  Batches(FileDataLayer& layer, int64_t passed) : layer_(layer), passed_(passed) {}

  bool Fill(DataBatch* batch) override {
    if (passed_ > 0) layer_.Skip(std::exchange(passed_, 0));
    layer_.LoadBatch(batch);
    return true;  // the items repeat indefinitely
  }

 private:
  FileDataLayer& layer_;
  int64_t passed_;
};

// Only training divides the items over the ranks: a TEST net reads all of them.
FileDataLayer::FileDataLayer(const LayerParameter& param, const NetContext& context)
    : Layer(param, context),
      stripe_(context.phase == TRAIN ? context.rank : 0),
      stripes_(context.phase == TRAIN ? context.ranks : 1),
      seed_(MixSeed(context.seed, HashOf(param.name()))) {}

void FileDataLayer::set_batch_size(int64_t batch_size) {
  Require(batch_size > 0, ErrorCode::kInvalidArgument, "batch_size must be set and above 0");
  batch_size_ = batch_size;
}

// Fetch() only counts minibatches. A resumed run calls it for each minibatch that it has already
// used, and the next Forward then skips all but the last of the counted minibatches at once.
std::optional<int64_t> FileDataLayer::Fetch() {
  ++fetched_;
  return std::nullopt;
}

void FileDataLayer::Forward(const Blobs& bottom, const Blobs& top) {
  int64_t steps = std::exchange(fetched_, 0);
  if (prefetcher_ == nullptr) {
    // If the prefetching thread has not started yet, it skips these items without loading them.
    const int64_t passed = std::max<int64_t>(steps - 1, 0) * batch_size_;
    prefetcher_ =
        std::make_unique<Prefetcher>(prefetch(), std::make_unique<Batches>(*this, passed));
    steps = 1;
  }
  const DataBatch* batch = &prefetcher_->Next();
  // A thread that is already running has read ahead, so it has loaded the skipped batches, which
  // are dropped here.
  for (; steps > 1; --steps) batch = &prefetcher_->Next();
  for (const auto& bad : batch->invalid_rows) context().on_invalid_row(bad.id, bad.reason);
  for (size_t i = 0; i < top.size(); ++i) {
    top[i]->Reshape(batch->tops[i].shape);
    std::copy_n(batch->tops[i].values.data(), top[i]->count(), top[i]->data_ptr());
  }
}

}  // namespace hearth::caffe
