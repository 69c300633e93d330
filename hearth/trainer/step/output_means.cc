#include "hearth/trainer/step/output_means.h"

#include "hearth/base/error.h"

namespace hearth::trainer {

OutputMeans::OutputMeans(std::vector<std::string> names)
    : names_(std::move(names)), outputs_(names_.size()) {}

void OutputMeans::Add(size_t index, std::span<const float> values, int64_t first_dimension,
                      int64_t rows) {
  Output& output = outputs_.at(index);
  if (rows == 0) return;
  if (output.kind == Kind::kUnknown) {
    // With a minibatch of one row, the kinds cannot be distinguished, but both yield the same mean.
    output.kind = first_dimension == rows ? Kind::kPerRow : Kind::kPerBatch;
  }
  const bool per_row = output.kind == Kind::kPerRow && first_dimension == rows;
  const size_t size = per_row ? values.size() / static_cast<size_t>(rows) : values.size();
  if (output.sum.empty()) output.sum.assign(size, 0.0);
  Require(size == output.sum.size(), ErrorCode::kInvalidArgument,
          "output \"{}\" has {} values for a minibatch of {} rows, but had {} before: its mean is "
          "not defined",
          names_[index], size, rows, output.sum.size());
  // The mean over rows is the sum over all minibatches b of rows(b) * value(b), divided by the
  // number of all rows. An output with a value per row is summed over its rows instead, which gives
  // each row the same weight.
  const double weight = per_row ? 1.0 : static_cast<double>(rows);
  for (size_t i = 0; i < values.size(); ++i) output.sum[i % size] += weight * values[i];
}

std::vector<int64_t> OutputMeans::sizes() const {
  std::vector<int64_t> sizes;
  for (const Output& output : outputs_) sizes.push_back(static_cast<int64_t>(output.sum.size()));
  return sizes;
}

std::vector<double> OutputMeans::Pack(const std::vector<int64_t>& sizes) const {
  // The layout is the same on all ranks, so that one all-reduce adds everything: the number of
  // rows, then the sums of all outputs, which are 0 on a rank without rows.
  std::vector<double> packed{rows_};
  for (size_t i = 0; i < outputs_.size(); ++i) {
    std::vector<double> sum = outputs_[i].sum;
    sum.resize(static_cast<size_t>(sizes[i]), 0.0);
    packed.insert(packed.end(), sum.begin(), sum.end());
  }
  return packed;
}

std::vector<std::vector<float>> OutputMeans::MeansOf(std::span<const double> packed,
                                                     const std::vector<int64_t>& sizes) {
  const double rows = packed[0];
  std::vector<std::vector<float>> means;
  size_t at = 1;
  for (int64_t size : sizes) {
    auto& mean = means.emplace_back();
    for (int64_t i = 0; i < size; ++i, ++at) {
      mean.push_back(rows > 0 ? static_cast<float>(packed[at] / rows) : 0.0f);
    }
  }
  return means;
}

}  // namespace hearth::trainer
