#include "hearth/caffe/kernels/bias_sum.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace hearth::caffe {
namespace {

// Few and many values a row, and rows that do not fill the blocks in which they are added.
class BiasSum : public testing::TestWithParam<std::vector<int64_t>> {};

TEST_P(BiasSum, IsAddedToWhatWasThere) {
  const at::Tensor dy = at::randn(GetParam());
  const at::Tensor before = at::randn({dy.size(1)});
  const at::Tensor sum = dy.to(at::kDouble).transpose(0, 1).flatten(1).sum(1) + before;
  at::Tensor db = before.clone();
  AddBiasSum(dy, db);
  EXPECT_TRUE(at::allclose(db.to(at::kDouble), sum, 1e-4, 1e-4));
  if (dy.dim() != 4) return;
  db.copy_(before);
  AddBiasSum(dy.contiguous(at::MemoryFormat::ChannelsLast), db);
  EXPECT_TRUE(at::allclose(db.to(at::kDouble), sum, 1e-4, 1e-4));
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
