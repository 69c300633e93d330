// Averages a net's outputs over minibatches of different sizes, weighted by rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hearth::trainer {

// Computes one mean per output blob. An output with one entry per row is averaged over its rows.
// The value of any other output (accuracy, loss) counts for each row of its minibatch. Used by one
// thread.
class OutputMeans {
 public:
  explicit OutputMeans(std::vector<std::string> names);

  // Adds the values of output `index` for a minibatch of `rows` rows. `first_dimension` is the
  // output's shape[0], or 0 for a scalar. Throws kInvalidArgument if an output's size differs
  // between minibatches.
  void Add(size_t index, std::span<const float> values, int64_t first_dimension, int64_t rows);
  void AddRows(int64_t rows) { rows_ += static_cast<double>(rows); }

  // Pack returns the row count and all sums as one array, to be summed over the ranks. `sizes` are
  // the sizes of all outputs, which a rank without minibatches does not know itself.
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
