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

// A reader of one rank's rows, epoch by epoch. Not thread-safe; several readers may share one
// DatasetRows. Calls wait like those of DatasetRows and throw the same errors.
class EpochReader {
 public:
  EpochReader(std::shared_ptr<DatasetRows> rows, uint64_t seed, ShuffleMode shuffle);

  // The rows that are left of an epoch, by ascending indices. They are visited in the order that an
  // epoch of that many rows has with the seed `order_seed`, by default the reader's seed. RowSeed()
  // of each row does not depend on `order_seed`.
  struct Rest {
    std::vector<int64_t> indices;
    std::optional<uint64_t> order_seed = std::nullopt;
  };

  // Starts another epoch, or only its remaining rows. Throws kInvalidArgument if the indices in
  // `rest` do not ascend.
  void Start(int64_t epoch, std::optional<Rest> rest = std::nullopt);

  // Number of rows in this epoch; waits until it is known.
  int64_t WaitRows();

  // Returns the rows at [position, position + count). If the epoch ends before that, continues with
  // its first rows if `wrap` is true, else returns fewer rows. Throws kInvalidArgument if it would
  // wrap an empty epoch, or if a remaining row does not exist.
  std::shared_ptr<const SelectedRows> Select(int64_t position, int64_t count, bool wrap);

  // The seed to pass to RowSeed() for each row.
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
