#include "hearth/caffe/kernels/matrix_product.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>
#include <thread>
#include <tuple>

#include "hearth/caffe/net/parallel.h"

namespace hearth::caffe {
namespace {

// Rows, inner size, columns.
using Sizes = std::tuple<int64_t, int64_t, int64_t>;

at::Tensor RandomMatrix(int64_t rows, int64_t columns, bool transposed) {
  return transposed ? at::randn({columns, rows}).t() : at::randn({rows, columns});
}

at::Tensor PlainProduct(const at::Tensor& a, const at::Tensor& b) {
  return at::mm(a.to(at::kDouble), b.to(at::kDouble));
}

void ExpectClose(const at::Tensor& found, const at::Tensor& wanted) {
  EXPECT_TRUE(at::allclose(found.to(at::kDouble), wanted, 1e-4, 1e-4));
}

class MatrixProduct : public testing::TestWithParam<Sizes> {
 protected:
  template <typename Function>
  void ForEachOrder(Function f) {
    const auto [rows, inner, columns] = GetParam();
    for (int order = 0; order < 8; ++order) {
      f(RandomMatrix(rows, inner, (order & 1) != 0), RandomMatrix(inner, columns, (order & 2) != 0),
        RandomMatrix(rows, columns, (order & 4) != 0));
    }
  }
};

TEST_P(MatrixProduct, IsWrittenWithOrWithoutABias) {
  ForEachOrder([](const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
    const at::Tensor bias = at::randn({b.size(1)});
    Multiply(a, b, bias, c);
    ExpectClose(c, PlainProduct(a, b) + bias);
    Multiply(a, b, {}, c);
    ExpectClose(c, PlainProduct(a, b));
  });
}

TEST_P(MatrixProduct, IsAddedOrWrittenOverAnything) {
  ForEachOrder([](const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
    const at::Tensor sum = c + PlainProduct(a, b);
    AddProduct(1, a, b, c);
    ExpectClose(c, sum);
    c.fill_(std::numeric_limits<float>::quiet_NaN());
    AddProduct(0, a, b, c);
    ExpectClose(c, PlainProduct(a, b));
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, MatrixProduct,
                         testing::Values(Sizes{64, 50, 20}, Sizes{1, 30, 7}, Sizes{5, 1, 7},
                                         Sizes{6, 30, 1}, Sizes{1, 1, 1}, Sizes{33, 129, 65},
                                         Sizes{0, 4, 3}, Sizes{5, 0, 7}));

TEST(MatrixProducts, OfPartsOfMatricesLeaveTheRest) {
  const at::Tensor a = at::randn({8, 40}), b = at::randn({40, 12}), c = at::zeros({8, 12});
  Multiply(a.narrow(1, 4, 16), b.narrow(0, 4, 16).narrow(1, 2, 5), {}, c.narrow(1, 3, 5));
  ExpectClose(c.narrow(1, 3, 5),
              PlainProduct(a.narrow(1, 4, 16), b.narrow(0, 4, 16).narrow(1, 2, 5)));
  EXPECT_EQ(c.narrow(1, 0, 3).abs().sum().item<float>(), 0);
  EXPECT_EQ(c.narrow(1, 8, 4).abs().sum().item<float>(), 0);
}

// Inside of a parallel loop each thread computes its own.
TEST(MatrixProducts, MayBeComputedBySeveralThreads) {
  constexpr int64_t kParts = 16;
  const at::Tensor a = at::randn({kParts * 8, 64}), b = at::randn({64, 96});
  const at::Tensor c = at::zeros({kParts * 8, 96});
  Multiply(a.narrow(0, 0, 8), b, {}, c.narrow(0, 0, 8));  // the same kind by all threads together
  ParallelFor(0, kParts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Multiply(a.narrow(0, 8 * i, 8), b, {}, c.narrow(0, 8 * i, 8));
    }
  });
  ExpectClose(c, PlainProduct(a, b));
}

// What a thread keeps goes with it, and nothing of another one's.
TEST(MatrixProducts, MayBeComputedByThreadsThatEnd) {
  const at::Tensor a = at::randn({16, 300}), b = at::randn({300, 200}), c = at::empty({16, 200});
  for (int i = 0; i < 20; ++i) {
    std::thread([&] { Multiply(a, b, {}, c); }).join();
    ExpectClose(c, PlainProduct(a, b));
    Multiply(a.narrow(0, 0, 8), b, {}, c.narrow(0, 0, 8));
  }
}

// As minibatches of ever other sizes ask for.
TEST(MatrixProducts, MayHaveMoreShapesThanAreKept) {
  const at::Tensor b = at::randn({9, 5});
  for (int64_t rows = 1; rows <= 1500; ++rows) {
    const at::Tensor a = at::randn({rows, 9}), c = at::empty({rows, 5});
    Multiply(a, b, {}, c);
    ExpectClose(c, PlainProduct(a, b));
  }
}

}  // namespace
}  // namespace hearth::caffe
