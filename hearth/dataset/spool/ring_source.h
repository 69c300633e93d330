// Minibatches read directly from a ring, for passes without a second epoch: test, features,
// predict.
#pragma once

#include <cstdint>
#include <memory>

#include "hearth/dataset/spool/minibatch.h"
#include "hearth/ring/ring_reader.h"

namespace hearth::dataset {

// A source of a ring's rows. A flush mark ends an epoch: Next() fills a minibatch across batches
// but not across the mark, then returns 0 rows until NextEpoch(). Rows are copied out of the ring,
// so a minibatch may be larger than the ring.
class RingSource : public MinibatchSource {
 public:
  // `timeout_s` bounds each wait for the feeder's next entry.
  RingSource(ring::RingEnd ring, double timeout_s);

  int64_t Next(int64_t max_rows, Minibatch* out) override;
  // Skips the remaining rows before the next mark.
  void NextEpoch() override;
  int64_t epoch() const override { return epoch_; }

  // True once the feeder has ended the stream and all rows were delivered; an epoch may also end
  // with the stream, without a mark.
  bool ended() const { return ended_; }

 private:
  // Sets batch_ to the next batch with rows; false at a mark or the end.
  bool Advance();

  ring::RingReader reader_;
  double timeout_s_;
  std::shared_ptr<const batch::BatchView> batch_;
  int64_t row_ = 0;
  int64_t epoch_ = 0;
  bool at_mark_ = false;
  bool ended_ = false;
};

}  // namespace hearth::dataset
