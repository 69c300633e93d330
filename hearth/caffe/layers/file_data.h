// Base of the layers that read files: prefetches batches, assigns a stripe of the items to each
// rank, and provides the seed of the layer's random choices.
#pragma once

#include <memory>

#include "hearth/caffe/data/prefetcher.h"
#include "hearth/caffe/net/layer.h"

namespace hearth::caffe {

// Base of the layers that read files. No rows are fed to such a layer: every Forward delivers the
// next minibatch. Items are numbered across epochs, in the order in which a single solver would use
// them. If Fetch() is called several times before a Forward, each call but the last skips a
// minibatch. In this way, a resumed run skips the minibatches that it has already used.
class FileDataLayer : public Layer {
 public:
  FileDataLayer(const LayerParameter& param, const NetContext& context);

  LayerTraits traits() const override { return {.arity = {0, 0, 1, 2}}; }
  std::optional<int64_t> Fetch() override;
  void Reshape(const Blobs&, const Blobs&) override {}  // Forward reshapes the tops
  void Forward(const Blobs& bottom, const Blobs& top) override;
  void Backward(const Blobs&, const std::vector<bool>&, const Blobs&) override {}

 protected:
  // Called once on the prefetching thread, before the first LoadBatch: skips the first `items`
  // items of this rank.
  virtual void Skip(int64_t items) = 0;
  virtual void LoadBatch(DataBatch* batch) = 0;
  virtual int prefetch() const { return 1; }  // number of prefetched batches

  void set_batch_size(int64_t batch_size);
  int64_t batch_size() const { return batch_size_; }
  // Returns true if `item` belongs to this rank's stripe.
  bool IsMine(uint64_t item) const { return item % stripes_ == stripe_; }
  // Seed of this layer's random choices, the same on all ranks.
  uint64_t seed() const { return seed_; }
  uint64_t stripe() const { return stripe_; }
  // Stops the thread that calls LoadBatch. Destructors of classes that override LoadBatch must call
  // it.
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
