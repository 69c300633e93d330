// The order in which an epoch goes through its rows: shuffled, but with locality in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hearth/dataset/permutation.h"

namespace hearth::dataset {

// Blocks of consecutive rows are shuffled over the whole epoch, then the rows of each window of
// many blocks among themselves: a minibatch comes from all over the data, but its neighbours read
// the same pages. Up to one window of rows this is a shuffle of single rows.
// The same (rows, seed, epoch) give the same order everywhere. One thread uses it.
class ShuffledOrder {
 public:
  static constexpr int64_t kBlockRows = 64;
  static constexpr int64_t kWindowRows = 256 * kBlockRows;

  ShuffledOrder(int64_t rows, uint64_t seed, uint64_t epoch);

  // Which row stands at `position`; a bijection of [0, rows). Fast while positions rise: each new
  // window has to be made first.
  int64_t At(int64_t position) {
    if (position / kWindowRows != window_) MakeWindow(position / kWindowRows);
    return order_[static_cast<size_t>(position % kWindowRows)];
  }

 private:
  void MakeWindow(int64_t window);

  int64_t rows_;
  uint64_t key_;
  Permutation blocks_;  // of the full blocks; rows after them keep their place at the end
  int64_t window_ = -1;
  std::vector<int64_t> order_;  // of the window's rows
};

}  // namespace hearth::dataset
