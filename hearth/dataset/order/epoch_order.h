// Order in which an epoch visits the rows of a rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "hearth/dataset/order/permutation.h"
#include "hearth/dataset/order/shuffled_order.h"

namespace hearth::dataset {

enum class ShuffleMode {
  kNone,    // arrival order
  kWindow,  // epoch 0 in growing windows as rows arrive; later epochs by ShuffledOrder
  kFull,    // one permutation of all rows
};

// "none", "window" or "full"; throws kInvalidArgument for anything else.
ShuffleMode ShuffleOf(std::string_view name);

// Seed for the random numbers of one row in one epoch; does not depend on the rank that reads it.
uint64_t RowSeed(uint64_t seed, int64_t epoch, int64_t partition, int64_t row);

// Order of one epoch, determined by (rows, seed, epoch, shuffle) alone. In epoch 0 of kWindow, only
// the rows up to the end of the current window must be known. Not thread-safe.
class EpochOrder {
 public:
  EpochOrder(ShuffleMode shuffle, uint64_t seed, int64_t epoch);

  // Number of the epoch's rows that must be known before the row at `position` is determined;
  // INT64_MAX: all.
  int64_t RowsNeeded(int64_t position) const;

  // Returns the row at `position`; a bijection of [0, rows). Between calls `rows` may grow to its
  // final value, but it must be at least RowsNeeded(position) or final. Fast if positions ascend.
  int64_t At(int64_t position, int64_t rows);

 private:
  // A window of epoch 0: positions [begin, end).
  struct Window {
    int64_t number, begin, end;
  };
  static Window WindowAt(int64_t position);
  int64_t InFirstEpoch(int64_t position, int64_t rows);

  ShuffleMode shuffle_;
  uint64_t seed_;
  int64_t epoch_;
  // The order of rows_ rows, for which it was last computed.
  int64_t rows_ = -1;
  std::optional<ShuffledOrder> blocks_;
  std::optional<Permutation> permutation_;
  // The most recent window of epoch 0.
  Window window_ = {-1, 0, 0};
  std::vector<int32_t> window_order_;
};

// Returns a flag for each of `rows` rows: true if the row is at one of the first `count` positions
// of the epoch.
std::vector<bool> RowsBefore(int64_t count, int64_t rows, EpochOrder order);

}  // namespace hearth::dataset
