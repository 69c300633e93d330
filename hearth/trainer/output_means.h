// Sums a net's outputs over minibatches of different sizes, such that the mean is over rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hearth::trainer {

// One mean per output blob. An output with one entry per row is averaged over its rows; any other
// (accuracy, loss) counts as the value of each of the minibatch's rows. One thread uses it.
class OutputMeans {
 public:
  explicit OutputMeans(std::vector<std::string> names);

  // Values of output `index` in a minibatch of `rows` rows; `first_dimension` is its shape[0], 0
  // for a scalar. Throws kInvalidArgument when an output changes its size between minibatches.
  void Add(size_t index, std::span<const float> values, int64_t first_dimension, int64_t rows);
  void AddRows(int64_t rows) { rows_ += static_cast<double>(rows); }

  // All sums and the row count as one array, so that ranks can add theirs up: a rank that saw no
  // minibatch has no sizes of its own and takes them from `sizes` (per output, from another rank).
  std::vector<int64_t> sizes() const;
  std::vector<double> Pack(const std::vector<int64_t>& sizes) const;
  static std::vector<std::vector<float>> MeansOf(std::span<const double> packed,
                                                 const std::vector<int64_t>& sizes);

  static double RowsOf(std::span<const double> packed) { return packed[0]; }

  const std::vector<std::string>& names() const { return names_; }
  double rows() const { return rows_; }

 private:
  enum class Kind { kUnknown, kPerRow, kPerBatch };
  struct Output {
    Kind kind = Kind::kUnknown;
    std::vector<double> sum;
  };

  std::vector<std::string> names_;
  std::vector<Output> outputs_;
  double rows_ = 0;
};

}  // namespace hearth::trainer
