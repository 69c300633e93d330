#include <gmock/gmock.h>

#include <cmath>

#include "hearth/caffe/layers/testing/layer_testing.h"

namespace hearth::caffe {
namespace {

template <typename Term>
LayerCase ReductionRow(std::string name, const std::string& param, size_t axis, float factor,
                       Term term) {
  return {std::move(name),
          "type: 'Reduction' reduction_param { " + param + " }",
          {{{2, 3, 4}}},
          [=](const Arrays& bottoms, const Arrays&) {
            const Array& x = bottoms[0];
            Array y(Shape(x.shape.begin(), x.shape.begin() + axis));
            const int64_t size = x.Count() / y.Count();
            for (int64_t i = 0; i < x.Count(); ++i) {
              y.values[i / size] += term(x.values[i]) * (factor < 0 ? -factor / size : factor);
            }
            return Arrays{y};
          }};
}

}  // namespace

// A negative factor selects the mean.
std::vector<LayerCase> ReductionCases() {
  return {
      ReductionRow("reduction_sum", "", 0, 1, [](float x) { return x; }),
      ReductionRow("reduction_sum_axis", "axis: 1 coeff: 0.5", 1, 0.5f, [](float x) { return x; }),
      ReductionRow("reduction_magnitudes", "operation: ASUM axis: -1", 2, 1,
                   [](float x) { return std::fabs(x); }),
      ReductionRow("reduction_squares", "operation: SUMSQ axis: 1", 1, 1,
                   [](float x) { return x * x; }),
      ReductionRow("reduction_mean", "operation: MEAN coeff: 3", 0, -3, [](float x) { return x; }),
  };
}
const bool kReductionCases = AddLayerCases(ReductionCases);

}  // namespace hearth::caffe
