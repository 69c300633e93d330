// Histogram of a set of values with bins of equal width, as TensorBoard displays it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth::tensorboard {

// A histogram of the finite values; `counts` is empty if there are none.
struct Histogram {
  double at = 0;  // seconds since 1970
  int64_t step = 0;
  std::string tag = {};
  double least = 0, most = 0, sum = 0, sum_squares = 0;
  std::vector<int64_t> counts = {};  // bins of equal width from `least` to `most`
};

}  // namespace hearth::tensorboard
