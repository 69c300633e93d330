// Averages a net's outputs over minibatches of different sizes, weighted by rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hearth::trainer {

// One mean per output blob. An output with one entry per row is averaged over its rows; any other
// (accuracy, loss) counts as the value of each of the minibatch's rows. One thread.
class OutputMeans {
 public:
  explicit OutputMeans(std::vector<std::string> names);

  // Adds the values of output `index` in a minibatch of `rows` rows; `first_dimension` is its
  // shape[0], 0 for a scalar. Throws kInvalidArgument if an output's size differs between
  // minibatches.
  void Add(size_t index, std::span<const float> values, int64_t first_dimension, int64_t rows);
  void AddRows(int64_t rows) { rows_ += static_cast<double>(rows); }

  // All sums and the row count as one array, to be summed over ranks: a rank without minibatches
  // takes the sizes from `sizes` (per output, from another rank).
  std::vector<int64_t> sizes() const;
  std::vector<double> Pack(const std::vector<int64_t>& sizes) const;
  static std::vector<std::vector<float>> MeansOf(std::span<const double> packed,
                                                 const std::vector<int64_t>& sizes);

  static double RowsOf(std::span<const double> packed) { return packed[0]; }

  const std::vector<std::string>& names() const { return names_; }
  double rows() const { return rows_; }

 private:
  enum class Kind { kUnknown, kPerRow, kPerBatch };
  // Weighted sum of an output's values.
  struct Output {
    Kind kind = Kind::kUnknown;
    std::vector<double> sum;
  };

  std::vector<std::string> names_;
  std::vector<Output> outputs_;
  double rows_ = 0;
};

}  // namespace hearth::trainer
