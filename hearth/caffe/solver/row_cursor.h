#pragma once

#include <cstdint>
#include <optional>

#include "hearth/caffe/net/net.h"

namespace hearth::caffe {

// The numbers of rows and minibatches replayed to reach a position.
struct Skipped {
  int64_t rows = 0, minibatches = 0;
};

// Position of a train net in its rows: the epoch, and the number of fetches in it.
class RowCursor {
 public:
  // `net` must outlive this object.
  explicit RowCursor(Net& net) : net_(net) {}

  // These functions call the net's functions of the same names, and count the calls.
  std::optional<int64_t> Fetch();
  void NextEpoch();

  // Replays the rows that an uninterrupted run would have read, so that the next minibatch is the
  // one that such a run would read next. A rank that runs out of rows before the others stops
  // reading. A net that reads files never runs out of rows, so it reads at most `most_fetches`
  // minibatches.
  Skipped SkipTo(int64_t epoch, int64_t fetches, int64_t most_fetches);

  int64_t epoch() const { return epoch_; }
  int64_t fetches() const { return fetches_; }  // in the current epoch

 private:
  Net& net_;
  int64_t epoch_ = 0, fetches_ = 0;
};

}  // namespace hearth::caffe
