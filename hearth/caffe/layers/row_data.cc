#include "hearth/caffe/layers/row_data.h"

#include <algorithm>

#include "hearth/base/error.h"

namespace hearth::caffe {
namespace {

int64_t Count(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  return count;
}

}  // namespace

RowDataLayer::RowDataLayer(const LayerParameter& param, const NetContext& context)
    : Layer(param, context) {}

void RowDataLayer::SetTops(int64_t batch_size, std::vector<Top> tops) {
  Require(batch_size > 0, ErrorCode::kInvalidArgument, "batch_size must be set and above 0");
  batch_size_ = batch_size;
  tops_ = std::move(tops);
  // The rows have a separate seed. If the prefetching thread drew from the net's stream, results
  // would depend on timing.
  if (context().random) seed_ = context().random->engine()();
}

std::optional<int64_t> RowDataLayer::Fetch() {
  if (!is_fed()) return std::nullopt;
  // The prefetcher is created here, not in SetUp, because a net that is built only for its shapes
  // or weights must open no source.
  if (prefetcher_ == nullptr) {
    RowBatches::Options options{.batch_size = batch_size_,
                                .row_sizes = {},
                                .threads = context().transform_threads,
                                .seed = seed_};
    for (const Top& top : tops_) options.row_sizes.push_back(Count(top.row_shape));
    const auto read = [this](const dataset::Minibatch::Row& row, uint64_t seed,
                             const std::vector<float*>& values) { ReadRow(row, seed, values); };
    prefetcher_ = std::make_unique<Prefetcher>(
        1, std::make_unique<RowBatches>(context().open_source(param_), options, read));
  }
  batch_ = &prefetcher_->Next();
  // Invalid rows are reported here, on the net's thread, and not while rows are read ahead, because
  // NextEpoch() drops some of those batches.
  if (context().on_invalid_row) {
    for (const auto& bad : batch_->invalid_rows) context().on_invalid_row(bad.id, bad.reason);
  }
  return batch_->rows.size();
}

void RowDataLayer::NextEpoch() {
  // Starts reading, so that an epoch counts even if none of its rows were read: a resumed run skips
  // whole epochs.
  if (prefetcher_ == nullptr) Fetch();
  // The prefetcher reuses the batch from its next call on.
  batch_ = nullptr;
  if (prefetcher_ != nullptr) prefetcher_->NextEpoch();
}

void RowDataLayer::Reshape(const Blobs& bottom, const Blobs& top) {
  const int64_t rows =
      batch_ != nullptr && batch_->rows.size() > 0 ? batch_->rows.size() : batch_size_;
  for (size_t i = 0; i < top.size(); ++i) {
    Shape shape = tops_[i].row_shape;
    shape.insert(tops_[i].transposed ? shape.end() : shape.begin(), rows);
    top[i]->Reshape(shape);
  }
}

void RowDataLayer::Forward(const Blobs& bottom, const Blobs& top) {
  Require(batch_ != nullptr && batch_->rows.size() > 0, ErrorCode::kInvalidArgument,
          "the layer reads rows of a DataFrame or file, but no rows were fetched");
  for (size_t i = 0; i < top.size(); ++i) Deliver(i, *top[i]);
}

void RowDataLayer::Deliver(size_t i, Blob& top) const {
  const std::vector<float>& from = batch_->tops[i].values;
  float* to = top.data_ptr();
  if (!tops_[i].transposed) {
    std::copy_n(from.data(), top.count(), to);
    return;
  }
  const int64_t rows = batch_->rows.size(), values = top.count() / rows;
  // Transposes rows x values to values x rows.
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t v = 0; v < values; ++v) to[v * rows + r] = from[r * values + v];
  }
}

}  // namespace hearth::caffe
