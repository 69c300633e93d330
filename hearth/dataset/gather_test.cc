#include "hearth/dataset/gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "hearth/dataset/testing/dataset_testing.h"

namespace hearth::dataset {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Rows of several batches, taken in a given order.
class Gather : public ::testing::Test {
 protected:
  Gather() : rows_({0}, 10), attempt_(0, 0) {}

  void Add(batch::BatchBuilder& rows) { attempt_.Write(rows); }
  std::shared_ptr<const SelectedRows> Take(std::vector<int64_t> indices) {
    attempt_.Announce(rows_, true);
    return rows_.Select(std::move(indices));
  }

  DatasetRows rows_;
  Attempt attempt_;
};

template <typename T>
std::vector<T> Numbers(const GatheredColumn& column, size_t rows) {
  std::vector<T> values(rows);
  column.CopyNumbers(reinterpret_cast<std::byte*>(values.data()));
  return values;
}

template <typename T>
std::vector<T> Lists(const GatheredColumn& column, size_t rows, int64_t length) {
  std::vector<T> values(rows * static_cast<size_t>(length));
  column.CopyLists(length, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

TEST_F(Gather, CopiesNumbersOfSeveralBatches) {
  batch::BatchBuilder first, second;
  first.AddInt64("a", {10, 11, 12}).AddDouble("b", {1.5, 2.5, 3.5});
  second.AddInt64("a", {13, 14}).AddDouble("b", {4.5, 5.5});
  Add(first);
  Add(second);
  const auto rows = Take({4, 0, 3, 2});
  EXPECT_THAT(Numbers<int64_t>({rows, "a"}, 4), ElementsAre(14, 10, 13, 12));
  EXPECT_THAT(Numbers<double>({rows, "b"}, 4), ElementsAre(5.5, 1.5, 4.5, 3.5));
}

TEST_F(Gather, CopiesManyRows) {
  constexpr int32_t kMany = 1000;
  std::vector<int32_t> numbers(kMany);
  std::vector<std::vector<float>> lists(kMany);
  for (int32_t i = 0; i < kMany; ++i) {
    numbers[static_cast<size_t>(i)] = i;
    lists[static_cast<size_t>(i)] = std::vector<float>(30, static_cast<float>(i));
  }
  batch::BatchBuilder batch;
  batch.AddInt32("n", numbers).AddFloatList("x", lists);
  Add(batch);
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < kMany; ++i) indices.push_back(i * 7 % kMany);
  const auto rows = Take(indices);
  const auto n = Numbers<int32_t>({rows, "n"}, kMany);
  const auto x = Lists<float>({rows, "x"}, kMany, 30);
  for (size_t i = 0; i < kMany; ++i) {
    ASSERT_EQ(n[i], indices[i]);
    for (size_t j = 0; j < 30; ++j) ASSERT_EQ(x[30 * i + j], static_cast<float>(indices[i]));
  }
}

TEST_F(Gather, OnlyFloatNullsBecomeNaN) {
  batch::BatchBuilder batch;
  batch.AddFloat("f", {1, 2, 3}, {false, true, false})
      .AddDouble("d", {1, 2, 3}, {true, false, false})
      .AddInt32("i", {1, 2, 3}, {false, true, true});
  Add(batch);
  const auto rows = Take({0, 1, 2});
  const auto floats = Numbers<float>({rows, "f"}, 3);
  EXPECT_TRUE(floats[0] == 1 && std::isnan(floats[1]) && floats[2] == 3);
  EXPECT_TRUE(std::isnan(Numbers<double>({rows, "d"}, 3)[0]));
  const Error error = Thrown([&] { Numbers<int32_t>({rows, "i"}, 3); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("column 'i' (int32) has nulls (2 of 3 values)"));
}

TEST_F(Gather, CopiesListsOfOneLength) {
  batch::BatchBuilder batch;
  batch.AddFloatList("x", {{1, 2}, {3, 4}, {5, 6}}).AddInt32List("y", {{1}, {2, 3}, {}});
  Add(batch);
  const auto rows = Take({2, 0, 1});
  const GatheredColumn x(rows, "x"), y(rows, "y");
  EXPECT_EQ(x.FirstLength(), 2);
  EXPECT_THAT(Lists<float>(x, 3, 2), ElementsAre(5, 6, 1, 2, 3, 4));
  const Error error = Thrown([&] { Lists<int32_t>(y, 3, 1); });
  EXPECT_THAT(error.message(), HasSubstr("column 'y' has lists of different lengths (0 in row 2"));
  EXPECT_EQ(y.LengthOf(2), 2);
  std::vector<int32_t> list(2);
  y.CopyList(2, reinterpret_cast<std::byte*>(list.data()));
  EXPECT_THAT(list, ElementsAre(2, 3));
}

TEST_F(Gather, RejectsNullLists) {
  batch::BatchBuilder batch;
  batch.AddFloatList("x", {{1, 2}, {}}, {false, true});
  Add(batch);
  const auto rows = Take({0, 1});
  const GatheredColumn x(rows, "x");
  EXPECT_EQ(x.LengthOf(1), -1);
  EXPECT_THAT(Thrown([&] { Lists<float>(x, 2, 2); }).message(), HasSubstr("1 of 2 values"));
}

TEST_F(Gather, ReturnsBytesWithoutCopying) {
  batch::BatchBuilder batch;
  batch.AddString("s", {"a", "", "ccc"}).AddBinary("b", {"x", "y", "z"}, {false, true, false});
  Add(batch);
  const auto rows = Take({2, 1, 0});
  const GatheredColumn s(rows, "s"), b(rows, "b");
  EXPECT_TRUE(s.is_text() && !b.is_text());
  EXPECT_EQ(s.BytesOf(0), "ccc");
  EXPECT_EQ(s.BytesOf(1), "");
  EXPECT_EQ(b.BytesOf(1), std::nullopt);
  EXPECT_EQ(b.BytesOf(2), "x");
}

TEST_F(Gather, FindsItsColumns) {
  batch::BatchBuilder batch;
  batch.AddInt32("n", {1}).AddInt32("twice", {1}).AddInt32("twice", {1});
  Add(batch);
  const auto rows = Take({});
  EXPECT_EQ(GatheredColumn(rows, "n").kind(), GatheredColumn::Kind::kNumbers);
  EXPECT_TRUE(Numbers<int32_t>({rows, "n"}, 0).empty());
  EXPECT_THAT(Thrown([&] { GatheredColumn(rows, "m"); }).message(),
              HasSubstr("no column 'm'; their columns are: n, twice, twice"));
  EXPECT_THAT(Thrown([&] { GatheredColumn(rows, "twice"); }).message(), HasSubstr("2 columns"));
}

}  // namespace
}  // namespace hearth::dataset
