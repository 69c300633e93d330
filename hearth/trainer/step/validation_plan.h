// Plans which rows each rank evaluates in the k-th validation.
#pragma once

#include <cstdint>

namespace hearth::trainer {

// Rows [begin, end) of a rank's validation rows, which repeat: row i is row i % own_rows.
struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// All ranks together evaluate S = min(test_iter * test_batch, V) of the V validation rows, each a
// share in proportion to the rows it holds; the next validation continues where this one ended.
class ValidationPlan {
 public:
  ValidationPlan(int64_t wanted_rows, int64_t total_rows, int64_t own_rows)
      : rows_(wanted_rows < total_rows ? wanted_rows : total_rows),
        total_(total_rows),
        own_(own_rows) {}

  // Rows of all ranks in one validation. Ranks round their shares, so that a single validation may
  // have up to a row per rank more or less; over time the shares are exact.
  int64_t rows() const { return rows_; }

  RowRange Share(int64_t validation) const {
    return {Boundary(validation), Boundary(validation + 1)};
  }

 private:
  int64_t Boundary(int64_t validation) const {
    if (total_ == 0) return 0;
    // 128 bits: validations * rows * rows overflows 64 for long runs on large sets.
    return static_cast<int64_t>(static_cast<__int128>(validation) * rows_ * own_ / total_);
  }

  int64_t rows_;
  int64_t total_;
  int64_t own_;
};

}  // namespace hearth::trainer
