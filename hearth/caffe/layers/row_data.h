// Base of the layers that are fed by rows.
#pragma once

#include <memory>

#include "hearth/caffe/data/row_batches.h"
#include "hearth/caffe/net/layer.h"

namespace hearth::caffe {

// Base of the layers that are fed by rows, from context.open_source, which the first Fetch opens.
// Fetch reports invalid rows to context.on_invalid_row. Invalid rows are skipped with all their
// columns and replaced by the following rows.
class RowDataLayer : public Layer {
 public:
  RowDataLayer(const LayerParameter& param, const NetContext& context);

  std::optional<int64_t> Fetch() override;
  const dataset::Minibatch* fetched_rows() const override {
    return batch_ ? &batch_->rows : nullptr;
  }
  void NextEpoch() override;

  // Gives the tops the size of the last minibatch or, before the first one, of batch_size rows.
  void Reshape(const Blobs& bottom, const Blobs& top) override;
  void Forward(const Blobs& bottom, const Blobs& top) override;
  void Backward(const Blobs&, const std::vector<bool>&, const Blobs&) override {}

 protected:
  // Shape of a top.
  struct Top {
    Shape row_shape;
    bool transposed = false;  // rows are the last axis instead of the first
  };
  // Called once, from SetUp of the layer.
  void SetTops(int64_t batch_size, std::vector<Top> tops);

  virtual bool is_fed() const { return static_cast<bool>(context().open_source); }
  // See RowBatches::ReadRow.
  virtual void ReadRow(const dataset::Minibatch::Row& row, uint64_t seed,
                       const std::vector<float*>& tops) const = 0;

  int64_t batch_size() const { return batch_size_; }
  // Stops the prefetching thread, which calls ReadRow. Destructors of classes that override ReadRow
  // must call it.
  void StopFetching() { prefetcher_.reset(); }

 private:
  void Deliver(size_t i, Blob& top) const;

  int64_t batch_size_ = 0;
  uint64_t seed_ = 0;
  std::vector<Top> tops_;
  const DataBatch* batch_ = nullptr;
  std::unique_ptr<Prefetcher> prefetcher_;
};

}  // namespace hearth::caffe
