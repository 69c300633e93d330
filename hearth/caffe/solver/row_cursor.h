#pragma once

#include <cstdint>
#include <optional>

#include "hearth/caffe/net/net.h"

namespace hearth::caffe {

// Rows replayed to reach a position.
struct Skipped {
  int64_t rows = 0, minibatches = 0;
};

// Position of a train net in its rows.
class RowCursor {
 public:
  // `net` must outlive it.
  explicit RowCursor(Net& net) : net_(net) {}

  // As Net's functions, counted.
  std::optional<int64_t> Fetch();
  void NextEpoch();

  // Replays the rows of an uninterrupted run, so that the next minibatch is the one it would have
  // had. A rank may run out of rows before the others; it then stops reading. Files have no end, so
  // of those it reads at most `most_fetches` minibatches.
  Skipped SkipTo(int64_t epoch, int64_t fetches, int64_t most_fetches);

  int64_t epoch() const { return epoch_; }
  int64_t fetches() const { return fetches_; }  // in this epoch

 private:
  Net& net_;
  int64_t epoch_ = 0, fetches_ = 0;
};

}  // namespace hearth::caffe
