#include "hearth/caffe/solver/gradient_norm.h"

#include <gtest/gtest.h>

#include <vector>

#include "hearth/caffe/tensor/parallel.h"

namespace hearth::caffe {
namespace {

TEST(SumOfSquares, IncludesEveryValue) {
  for (int64_t count : {0, 1, 7, 8, 65536, 65537, 200'001}) {
    const std::vector<float> values(static_cast<size_t>(count), 2.0f);
    EXPECT_EQ(SumOfSquares(values.data(), count), 4.0 * static_cast<double>(count));
  }
}

TEST(SumOfSquares, DoesNotDependOnTheNumberOfThreads) {
  std::vector<float> values(1'000'003);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1.0f / static_cast<float>(i + 1);
  const int threads = ThreadCount();
  SetThreadCount(1);
  const double alone = SumOfSquares(values.data(), static_cast<int64_t>(values.size()));
  SetThreadCount(5);
  EXPECT_EQ(SumOfSquares(values.data(), static_cast<int64_t>(values.size())), alone);
  SetThreadCount(threads);
}

}  // namespace
}  // namespace hearth::caffe
