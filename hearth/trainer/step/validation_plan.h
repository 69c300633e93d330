// Plans which rows each rank evaluates in the k-th validation.
#pragma once

#include <cstdint>

namespace hearth::trainer {

// Rows [begin, end) of a rank's validation rows, repeated endlessly: row i is row i % own_rows.
struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// Plan of the rows that one rank evaluates. In each validation, all ranks together evaluate S =
// min(test_iter * test_batch, V) of the V validation rows. Each rank's share is proportional to the
// rows that it holds. The next validation continues where the last one ended.
class ValidationPlan {
 public:
  ValidationPlan(int64_t wanted_rows, int64_t total_rows, int64_t own_rows)
      : rows_(wanted_rows < total_rows ? wanted_rows : total_rows),
        total_(total_rows),
        own_(own_rows) {}

  // Number of rows of all ranks in one validation. Ranks round their shares, so a single validation
  // may have up to one row per rank more or less; over many validations the shares are exact.
  int64_t rows() const { return rows_; }

  RowRange Share(int64_t validation) const {
    return {Boundary(validation), Boundary(validation + 1)};
  }

 private:
  int64_t Boundary(int64_t validation) const {
    if (total_ == 0) return 0;
    // Needs 128 bits, because validations * rows * rows overflows 64 bits in long runs on large
    // data sets.
    return static_cast<int64_t>(static_cast<__int128>(validation) * rows_ * own_ / total_);
  }

  int64_t rows_;
  int64_t total_;
  int64_t own_;
};

}  // namespace hearth::trainer
