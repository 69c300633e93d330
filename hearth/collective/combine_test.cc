#include "hearth/collective/combine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace hearth::collective {
namespace {

// Longer than any vector register, with a rest.
constexpr size_t kCount = 133;

template <typename T>
void Check(DataType type, Op op, T (*expected)(T, T)) {
  std::vector<T> a(kCount);
  std::vector<T> b(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    a[i] = static_cast<T>(i % 7);
    b[i] = static_cast<T>(i % 5 + 1);
  }
  std::vector<T> into = a;
  Combine({type, op}, into.data(), b.data(), kCount);
  std::vector<T> first = a;
  std::vector<T> second = b;
  CombineBoth({type, op}, first.data(), second.data(), kCount);
  for (size_t i = 0; i < kCount; ++i) {
    const T value = expected(a[i], b[i]);
    EXPECT_EQ(into[i], value);
    EXPECT_EQ(first[i], value);
    EXPECT_EQ(second[i], value);
  }
}

template <typename T>
void CheckAllOps(DataType type) {
  Check<T>(type, Op::kSum, [](T a, T b) { return static_cast<T>(a + b); });
  Check<T>(type, Op::kMin, [](T a, T b) { return std::min(a, b); });
  Check<T>(type, Op::kMax, [](T a, T b) { return std::max(a, b); });
}

TEST(Combine, Float32) { CheckAllOps<float>(DataType::kFloat32); }
TEST(Combine, Float64) { CheckAllOps<double>(DataType::kFloat64); }
TEST(Combine, Int32) { CheckAllOps<int32_t>(DataType::kInt32); }
TEST(Combine, Int64) { CheckAllOps<int64_t>(DataType::kInt64); }
TEST(Combine, Uint8) { CheckAllOps<uint8_t>(DataType::kUint8); }

TEST(Combine, IntegerSumsWrapAround) {
  int32_t a = std::numeric_limits<int32_t>::max();
  const int32_t one = 1;
  Combine({DataType::kInt32, Op::kSum}, &a, &one, 1);
  EXPECT_EQ(a, std::numeric_limits<int32_t>::min());
}

TEST(Part, CoversEverythingAndDiffersByAtMostOne) {
  for (const size_t count : {0U, 1U, 4U, 5U, 23U}) {
    size_t next = 0;
    for (int i = 0; i < 5; ++i) {
      const Range part = Part(count, 5, i);
      EXPECT_EQ(part.begin, next);
      EXPECT_TRUE(part.size() == count / 5 || part.size() == count / 5 + 1);
      next = part.end;
    }
    EXPECT_EQ(next, count);
  }
}

}  // namespace
}  // namespace hearth::collective
