#include "hearth/caffe/solver/gradient_norm.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "hearth/caffe/tensor/parallel.h"

namespace hearth::caffe {

// Sums blocks of a fixed size and adds them in order, so that the result does not depend on the
// number of threads. Sums are double, because a float would lose small gradients in a large sum.
double SumOfSquares(const float* values, int64_t count) {
  constexpr int64_t kBlock = 1 << 16;
  const int64_t blocks = (count + kBlock - 1) / kBlock;
  std::vector<double> sums(static_cast<size_t>(blocks));
  ParallelFor(0, blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t last = std::min(count, (block + 1) * kBlock);
      double lanes[8] = {};  // independent sums, which can be vectorized
      int64_t i = block * kBlock;
      for (; i + 8 <= last; i += 8) {
        for (int lane = 0; lane < 8; ++lane) {
          const double value = values[i + lane];
          lanes[lane] += value * value;
        }
      }
      for (; i < last; ++i) lanes[0] += static_cast<double>(values[i]) * values[i];
      sums[static_cast<size_t>(block)] = std::accumulate(lanes, lanes + 8, 0.0);
    }
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace hearth::caffe
