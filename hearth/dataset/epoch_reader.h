// Rows of a rank by their position in an epoch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "hearth/dataset/dataset_rows.h"
#include "hearth/dataset/epoch_order.h"
#include "hearth/dataset/taken_rows.h"

namespace hearth::dataset {

// One thread uses it; several may share one DatasetRows. Waits as DatasetRows does.
class EpochReader {
 public:
  EpochReader(std::shared_ptr<DatasetRows> rows, uint64_t seed, ShuffleMode shuffle);

  // Rows of an epoch that are left: their indices, rising. They come in the order of an epoch of
  // so many rows, by `order_seed` where that is set; RowSeed() of the rows stays as it was.
  struct Rest {
    std::vector<int64_t> indices;
    std::optional<uint64_t> order_seed = std::nullopt;
  };

  // Goes to another epoch, or to its rest. Throws kInvalidArgument where indices do not rise.
  void Start(int64_t epoch, std::optional<Rest> rest = std::nullopt);

  // Rows in this epoch; waits until their number is known.
  int64_t WaitRows();

  // The rows at [position, position + count). Behind the epoch's last row come its first ones again
  // where `wrap` is true, else there are fewer. Throws kInvalidArgument where it would wrap around
  // no rows, or the rest names a row that there is not.
  std::shared_ptr<const TakenRows> Take(int64_t position, int64_t count, bool wrap);

  // For RowSeed() of each row.
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
