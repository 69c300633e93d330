#include <gmock/gmock.h>

#include <cmath>

#include "hearth/caffe/layers/testing/layer_testing.h"

namespace hearth::caffe {
namespace {

struct Normalized {
  size_t axes = 2;  // number of leading axes that index the normalized rows
  bool variance = true;
  double eps = 0;

  Arrays operator()(const Arrays& bottoms, const Arrays&) const {
    Array y = bottoms[0];
    int64_t rows = 1;
    for (size_t i = 0; i < axes; ++i) rows *= y.shape[i];
    const int64_t size = y.Count() / rows;
    for (int64_t row = 0; row < rows; ++row) {
      float* values = &y.values[row * size];
      double mean = 0, squares = 0;
      for (int64_t i = 0; i < size; ++i) mean += values[i] / static_cast<double>(size);
      for (int64_t i = 0; i < size; ++i) squares += std::pow(values[i] - mean, 2);
      const double by = variance ? std::sqrt(squares / static_cast<double>(size)) + eps : 1;
      for (int64_t i = 0; i < size; ++i) values[i] = static_cast<float>((values[i] - mean) / by);
    }
    return {y};
  }
};

LayerCase MvnRow(std::string name, const std::string& param, Shape bottom, Normalized reference) {
  LayerCase row{
      std::move(name), "type: 'MVN' mvn_param { " + param + " }", {{std::move(bottom)}}, reference};
  row.in_place = true;
  return row;
}

}  // namespace

std::vector<LayerCase> MvnCases() {
  LayerCase eps = MvnRow("mvn_eps", "eps: 0.3", {2, 2, 3, 2}, {.eps = 0.3f});
  eps.has_gradient = false;  // as in Caffe, the gradient is computed as if eps were 0
  return {
      MvnRow("mvn", "", {2, 2, 3, 2}, {}),
      MvnRow("mvn_across_channels", "across_channels: true", {2, 2, 3, 2}, {.axes = 1}),
      MvnRow("mvn_mean", "normalize_variance: false", {2, 2, 3, 2}, {.variance = false}),
      MvnRow("mvn_two_axes", "across_channels: true", {3, 6}, {.axes = 1}),
      eps,
  };
}
const bool kMvnCases = AddLayerCases(MvnCases);

}  // namespace hearth::caffe
