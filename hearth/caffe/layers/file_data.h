// What the layers that read files themselves share: batches made ahead, a stripe of the items for
// each rank, random choices that follow from the item.
#pragma once

#include <memory>

#include "hearth/caffe/data/prefetcher.h"
#include "hearth/caffe/net/layer.h"

namespace hearth::caffe {

// Items are numbered in the order in which one solver alone would use them, across epochs. Not fed:
// every Forward delivers the next minibatch. A Fetch before it skips one, so that a resumed run can
// skip the minibatches that were used.
class FileDataLayer : public Layer {
 public:
  FileDataLayer(const LayerParameter& param, const NetContext& context);

  LayerTraits traits() const override { return {.arity = {0, 0, 1, 2}}; }
  std::optional<int64_t> Fetch() override;
  void Reshape(const Blobs&, const Blobs&) override {}  // Forward does, as the items ask
  void Forward(const Blobs& bottom, const Blobs& top) override;
  void Backward(const Blobs&, const std::vector<bool>&, const Blobs&) override {}

 protected:
  // On the prefetching thread. Skips `items` of its rank before the first batch is loaded.
  virtual void Skip(int64_t items) = 0;
  virtual void LoadBatch(DataBatch* batch) = 0;
  virtual int prefetch() const { return 1; }  // batches kept ready

  void set_batch_size(int64_t batch_size);
  int64_t batch_size() const { return batch_size_; }
  // Whether this rank uses an item.
  bool IsMine(uint64_t item) const { return item % stripes_ == stripe_; }
  // Of this layer's random choices, the same on all ranks.
  uint64_t seed() const { return seed_; }
  uint64_t stripe() const { return stripe_; }
  // Ends the thread, which calls LoadBatch: for destructors of classes that override it.
  void StopLoading() { prefetcher_.reset(); }

 private:
  class Batches;

  const uint64_t stripe_, stripes_;
  uint64_t seed_;
  int64_t batch_size_ = 0;
  int64_t fetched_ = 0;  // minibatches to advance by at the next Forward
  std::unique_ptr<Prefetcher> prefetcher_;
};

}  // namespace hearth::caffe
