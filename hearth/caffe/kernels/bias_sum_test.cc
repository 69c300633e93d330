#include "hearth/caffe/kernels/bias_sum.h"

#include <gtest/gtest.h>

#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

// Few and many values per row, and rows that do not fill the blocks of the summation.
class BiasSum : public testing::TestWithParam<std::vector<int64_t>> {};

TEST_P(BiasSum, IsAddedToTheExistingValues) {
  const Tensor dy = Randn(GetParam());
  const Tensor before = Randn({dy.size(1)});
  const Tensor rows = dy.transpose(0, 1).contiguous().reshape({dy.size(1), -1});
  const Tensor sum = before.clone();
  for (int64_t i = 0; i < rows.numel(); ++i) {
    const int64_t row = i / rows.size(1);
    sum.data_ptr()[row] += rows[row].data_ptr()[i % rows.size(1)];
  }
  Tensor db = before.clone();
  AddBiasSum(dy, db);
  EXPECT_TRUE(AllClose(db, sum, 1e-4, 1e-3));
  if (dy.dim() != 4) return;
  db.copy_(before);
  AddBiasSum(dy.permute({0, 2, 3, 1}).contiguous().permute({0, 3, 1, 2}), db);
  EXPECT_TRUE(AllClose(db, sum, 1e-4, 1e-3));
}

INSTANTIATE_TEST_SUITE_P(Shapes, BiasSum,
                         testing::Values(std::vector<int64_t>{1, 1}, std::vector<int64_t>{64, 500},
                                         std::vector<int64_t>{3, 1000},
                                         std::vector<int64_t>{1001, 20}, std::vector<int64_t>{0, 7},
                                         std::vector<int64_t>{2, 3, 5, 7},
                                         std::vector<int64_t>{9, 20, 24, 24},
                                         std::vector<int64_t>{2, 300, 3, 3}));

}  // namespace
}  // namespace hearth::caffe
