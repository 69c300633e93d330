#include "hearth/caffe/kernels/matrix_product.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>
#include <tuple>

#include "hearth/caffe/tensor/parallel.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

// Rows, inner size, columns.
using Sizes = std::tuple<int64_t, int64_t, int64_t>;

Tensor RandomMatrix(int64_t rows, int64_t columns, bool transposed) {
  return transposed ? Randn({columns, rows}).t() : Randn({rows, columns});
}

Tensor PlainProduct(const Tensor& a, const Tensor& b) {
  const Tensor left = a.contiguous(), right = b.contiguous();
  const int64_t inner = b.size(0), columns = b.size(1);
  const Tensor product = Tensor::Empty({a.size(0), columns});
  for (int64_t i = 0; i < product.numel(); ++i) {
    double sum = 0;
    for (int64_t k = 0; k < inner; ++k) {
      sum += double{left.data_ptr()[i / columns * inner + k]} *
             right.data_ptr()[k * columns + i % columns];
    }
    product.data_ptr()[i] = static_cast<float>(sum);
  }
  return product;
}

void ExpectClose(const Tensor& found, const Tensor& wanted) {
  EXPECT_TRUE(AllClose(found, wanted, 1e-4, 1e-4));
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
  ForEachOrder([](const Tensor& a, const Tensor& b, const Tensor& c) {
    const Tensor bias = Randn({b.size(1)});
    Multiply(a, b, bias, c);
    ExpectClose(c, Sum(PlainProduct(a, b), bias));
    Multiply(a, b, {}, c);
    ExpectClose(c, PlainProduct(a, b));
  });
}

TEST_P(MatrixProduct, IsAddedOrOverwritesAnything) {
  ForEachOrder([](const Tensor& a, const Tensor& b, const Tensor& c) {
    const Tensor sum = Sum(c, PlainProduct(a, b));
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

TEST(MatrixProducts, OfPartsOfMatricesLeaveTheRestUnchanged) {
  const Tensor a = Randn({8, 40}), b = Randn({40, 12}), c = Tensor::Zeros({8, 12});
  Multiply(a.narrow(1, 4, 16), b.narrow(0, 4, 16).narrow(1, 2, 5), {}, c.narrow(1, 3, 5));
  ExpectClose(c.narrow(1, 3, 5),
              PlainProduct(a.narrow(1, 4, 16), b.narrow(0, 4, 16).narrow(1, 2, 5)));
  EXPECT_TRUE(Equal(c.narrow(1, 0, 3), Full({8, 3}, 0)));
  EXPECT_TRUE(Equal(c.narrow(1, 8, 4), Full({8, 4}, 0)));
}

// Each thread of a parallel loop computes its own product.
TEST(MatrixProducts, CanBeComputedByManyThreads) {
  constexpr int64_t kParts = 16;
  const Tensor a = Randn({kParts * 8, 64}), b = Randn({64, 96});
  const Tensor c = Tensor::Zeros({kParts * 8, 96});
  Multiply(a.narrow(0, 0, 8), b, {},
           c.narrow(0, 0, 8));  // prepares the kind of product that all threads compute below
  ParallelFor(0, kParts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Multiply(a.narrow(0, 8 * i, 8), b, {}, c.narrow(0, 8 * i, 8));
    }
  });
  ExpectClose(c, PlainProduct(a, b));
}

// A thread's cache is destroyed with the thread, which must not affect other threads.
TEST(MatrixProducts, CanBeComputedByThreadsThatEnd) {
  const Tensor a = Randn({16, 300}), b = Randn({300, 200}), c = Tensor::Empty({16, 200});
  for (int i = 0; i < 20; ++i) {
    std::thread([&] { Multiply(a, b, {}, c); }).join();
    ExpectClose(c, PlainProduct(a, b));
    Multiply(a.narrow(0, 0, 8), b, {}, c.narrow(0, 0, 8));
  }
}

// The cache reaches its limit if the minibatch size keeps changing.
TEST(MatrixProducts, CanHaveMoreShapesThanAreCached) {
  const Tensor b = Randn({9, 5});
  for (int64_t rows = 1; rows <= 1500; ++rows) {
    const Tensor a = Randn({rows, 9}), c = Tensor::Empty({rows, 5});
    Multiply(a, b, {}, c);
    ExpectClose(c, PlainProduct(a, b));
  }
}

}  // namespace
}  // namespace hearth::caffe
