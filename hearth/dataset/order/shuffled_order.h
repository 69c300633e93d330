// Shuffled order of an epoch that keeps locality in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hearth/dataset/order/permutation.h"

namespace hearth::dataset {

// Shuffles blocks of consecutive rows over the whole epoch, then the rows inside each window of
// many blocks. Therefore a minibatch samples the whole dataset, while consecutive minibatches read
// the same pages. If the rows fit in one window, this is a plain shuffle. The same (rows, seed,
// epoch) gives the same order on every machine. Not thread-safe.
class ShuffledOrder {
 public:
  static constexpr int64_t kBlockRows = 64;
  static constexpr int64_t kWindowRows = 256 * kBlockRows;

  ShuffledOrder(int64_t rows, uint64_t seed, uint64_t epoch);

  // Returns the row at `position`; a bijection of [0, rows). Fast if positions ascend, because each
  // change to another window shuffles that window.
  int64_t At(int64_t position) {
    if (position / kWindowRows != window_) MakeWindow(position / kWindowRows);
    return order_[static_cast<size_t>(position % kWindowRows)];
  }

 private:
  void MakeWindow(int64_t window);

  int64_t rows_;
  uint64_t key_;
  Permutation blocks_;  // order of full blocks; other rows stay at the end
  int64_t window_ = -1;
  std::vector<int64_t> order_;  // the current window's rows, shuffled
};

}  // namespace hearth::dataset
