#include "hearth/dataset/epoch_reader.h"

#include <algorithm>
#include <utility>

#include "hearth/base/error.h"

namespace hearth::dataset {

EpochReader::EpochReader(std::shared_ptr<DatasetRows> rows, uint64_t seed, ShuffleMode shuffle)
    : rows_(std::move(rows)), seed_(seed), shuffle_(shuffle), order_(shuffle, seed, 0) {}

void EpochReader::Start(int64_t epoch, std::optional<Rest> rest) {
  if (rest) {
    const auto& indices = rest->indices;
    const auto fall = std::adjacent_find(indices.begin(), indices.end(),
                                         [](int64_t a, int64_t b) { return a >= b; });
    Require(fall == indices.end() && (indices.empty() || indices.front() >= 0),
            ErrorCode::kInvalidArgument,
            "the remaining rows of epoch {} must be ascending indices from 0", epoch);
  }
  order_ = EpochOrder(shuffle_, rest ? rest->order_seed.value_or(seed_) : seed_, epoch);
  epoch_ = epoch;
  remaining_.reset();
  if (rest) remaining_ = std::move(rest->indices);
}

int64_t EpochReader::WaitRows() {
  return remaining_ ? static_cast<int64_t>(remaining_->size()) : rows_->WaitRows();
}

// Waits until `needed` of the epoch's rows, or all, have arrived; returns how many have.
int64_t EpochReader::WaitEpochRows(int64_t needed) {
  if (!remaining_) return rows_->WaitIndex(needed);
  const auto rows = std::min(needed, static_cast<int64_t>(remaining_->size()));
  if (rows == 0) return 0;
  const int64_t last = (*remaining_)[static_cast<size_t>(rows - 1)];
  const int64_t there = rows_->WaitIndex(last + 1);
  Require(there > last, ErrorCode::kInvalidArgument,
          "row {} is among the remaining rows of epoch {}, but this rank has {} rows", last, epoch_,
          there);
  return rows;
}

std::shared_ptr<const SelectedRows> EpochReader::Select(int64_t position, int64_t count,
                                                        bool wrap) {
  Require(position >= 0 && count >= 0, ErrorCode::kInvalidArgument,
          "cannot read {} rows at position {} of epoch {}", count, position, epoch_);
  std::vector<int64_t> indices;
  if (count > 0) {
    const int64_t there = WaitEpochRows(order_.RowsNeeded(position + count - 1));
    // If `there` is less than the number of rows needed, the epoch has no more rows.
    const int64_t end = wrap ? position + count : std::min(position + count, there);
    Require(there > 0 || end <= position, ErrorCode::kInvalidArgument,
            "this rank has no row in epoch {}: give it a partition with rows, or use fewer ranks",
            epoch_);
    indices.reserve(static_cast<size_t>(std::max<int64_t>(0, end - position)));
    for (int64_t at = position; at < end; ++at) {
      // Positions past the epoch's end repeat the epoch's order, so that each row occurs once per
      // round.
      const int64_t row = order_.At(at < there ? at : at % there, there);
      indices.push_back(remaining_ ? (*remaining_)[static_cast<size_t>(row)] : row);
    }
  }
  return rows_->Select(std::move(indices));
}

}  // namespace hearth::dataset
