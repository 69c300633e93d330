// Reads rows of a rank by their position in an epoch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "hearth/dataset/dataset_rows.h"
#include "hearth/dataset/order/epoch_order.h"
#include "hearth/dataset/selected_rows.h"

namespace hearth::dataset {

// Not thread-safe; several readers may share one DatasetRows. Calls wait like those of DatasetRows
// and throw the same errors.
class EpochReader {
 public:
  EpochReader(std::shared_ptr<DatasetRows> rows, uint64_t seed, ShuffleMode shuffle);

  // Ascending indices of the remaining rows of an epoch. They are visited in the order of an epoch
  // of that many rows, shuffled with the seed `order_seed` if set. RowSeed() of each row does not
  // change.
  struct Rest {
    std::vector<int64_t> indices;
    std::optional<uint64_t> order_seed = std::nullopt;
  };

  // Starts another epoch, or only its remaining rows. Throws kInvalidArgument if indices do not
  // ascend.
  void Start(int64_t epoch, std::optional<Rest> rest = std::nullopt);

  // Number of rows in this epoch; waits until it is known.
  int64_t WaitRows();

  // The rows at [position, position + count). At the end of the epoch continues with its first rows
  // if `wrap` is true, else returns fewer rows. Throws kInvalidArgument if it would wrap an empty
  // epoch, or if a remaining row does not exist.
  std::shared_ptr<const SelectedRows> Select(int64_t position, int64_t count, bool wrap);

  // Seed for RowSeed() of each row.
  uint64_t seed() const { return seed_; }
  int64_t epoch() const { return epoch_; }

 private:
  int64_t WaitEpochRows(int64_t needed);

  std::shared_ptr<DatasetRows> rows_;
  uint64_t seed_;
  ShuffleMode shuffle_;
  int64_t epoch_ = 0;
  EpochOrder order_;
  std::optional<std::vector<int64_t>> remaining_;
};

}  // namespace hearth::dataset
