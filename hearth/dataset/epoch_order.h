// The order in which an epoch goes through the rows of a rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "hearth/dataset/permutation.h"
#include "hearth/dataset/shuffled_order.h"

namespace hearth::dataset {

enum class ShuffleMode {
  kNone,    // as the rows come
  kWindow,  // epoch 0 in windows of growing size, as rows arrive; later ones by ShuffledOrder
  kFull,    // one permutation of all rows
};

// "none", "window" or "full"; throws kInvalidArgument for anything else.
ShuffleMode ShuffleOf(std::string_view name);

// A seed for random numbers of one row in one epoch, wherever the row is read.
uint64_t RowSeed(uint64_t seed, int64_t epoch, int64_t partition, int64_t row);

// Follows from (rows, seed, epoch, shuffle) alone; in epoch 0 of kWindow the rows of a window need
// not be known beyond it. One thread uses it.
class EpochOrder {
 public:
  EpochOrder(ShuffleMode shuffle, uint64_t seed, int64_t epoch);

  // How many of the epoch's rows must be known before the row at `position` is: INT64_MAX for all.
  int64_t RowsNeeded(int64_t position) const;

  // Which row is at `position`, a bijection of [0, rows). `rows` may grow until it is final, once
  // it is RowsNeeded(position) or all. Fast while positions rise.
  int64_t At(int64_t position, int64_t rows);

 private:
  struct Window {
    int64_t number, begin, end;
  };
  static Window WindowAt(int64_t position);
  int64_t InFirstEpoch(int64_t position, int64_t rows);

  ShuffleMode shuffle_;
  uint64_t seed_;
  int64_t epoch_;
  // Of the number of rows that they were made for.
  int64_t rows_ = -1;
  std::optional<ShuffledOrder> blocks_;
  std::optional<Permutation> permutation_;
  // The window of epoch 0 that was last made.
  Window window_ = {-1, 0, 0};
  std::vector<int32_t> window_order_;
};

// Which of `rows` rows the first `count` positions of an epoch are.
std::vector<bool> RowsBefore(int64_t count, int64_t rows, EpochOrder order);

}  // namespace hearth::dataset
