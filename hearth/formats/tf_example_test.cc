// Tests examples byte by byte, as in a file; batch/tf_example_encode_test.cc has round trips.
#include "hearth/formats/tf_example.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "hearth/base/testing/error_testing.h"
#include "hearth/formats/wire.h"

namespace hearth::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Field(uint32_t number, const std::string& bytes) {
  std::string field;
  PutHead(number, bytes.size(), &field);
  return field + bytes;
}

// Returns one feature. `kind` is 1 for bytes, 2 for floats, 3 for integers; `list` is the message
// with the values.
std::string FeatureOf(const std::string& name, uint32_t kind, const std::string& list) {
  return Field(1, Field(1, name) + Field(2, Field(kind, list)));
}
std::string ExampleOf(const std::string& features) { return Field(1, features); }

TEST(ExampleColumnsTest, PackedAndSingleNumbersAreEqual) {
  ExampleColumns rows({{.name = "a", .kind = FeatureKind::kInt64}});
  rows.Add(ExampleOf(FeatureOf("a", 3, Field(1, "\x01\x02"))));  // packed
  rows.Add(ExampleOf(FeatureOf("a", 3, "\x08\x01\x08\x02")));    // one by one
  rows.Add(ExampleOf(FeatureOf("a", 3, "")));                    // no values
  rows.Add(ExampleOf(FeatureOf("b", 3, Field(1, "\x05"))));      // another feature
  EXPECT_THAT(rows.columns()[0].ints, ElementsAre(1, 2, 1, 2));
  EXPECT_THAT(rows.columns()[0].row_offsets, ElementsAre(0, 2, 4, 4, 4));
  EXPECT_THAT(rows.columns()[0].present, ElementsAre(1, 1, 1, 0));
}

TEST(ExampleColumnsTest, UnknownFieldsAreSkipped) {
  ExampleColumns rows({{.name = "a", .kind = FeatureKind::kBytes}});
  const std::string known = FeatureOf("a", 1, Field(1, "x"));
  rows.Add("\x10\x07" + Field(9, "later version") + ExampleOf(Field(7, "more") + known));
  EXPECT_EQ(rows.columns()[0].bytes, "x");
}

TEST(ExampleColumnsTest, EveryTruncationIsAnError) {
  const std::string whole = ExampleOf(FeatureOf("a", 1, Field(1, "value")));
  for (size_t size = 1; size < whole.size(); ++size) {
    ExampleColumns rows({{.name = "a", .kind = FeatureKind::kBytes}});
    EXPECT_EQ(CodeOf([&] { rows.Add(whole.substr(0, size)); }), ErrorCode::kDataLoss) << size;
  }
}

TEST(ExampleColumnsTest, MalformedValuesAreRefused) {
  const std::string endless = std::string(11, '\xff');
  for (const auto& [kind, list] : std::vector<std::pair<uint32_t, std::string>>{
           {2, Field(1, "abc")},    // not a multiple of four bytes
           {2, "\x08\x01"},         // an integer in a list of floats
           {1, "\x08\x01"},         // an integer in a list of bytes
           {3, Field(1, endless)},  // a number of more than ten bytes
           {3, "\x0a\x7f"},         // longer than its message
           {3, "\x0f\x01"}}) {      // a wire type that does not exist
    ExampleColumns rows({{.name = "a", .kind = static_cast<FeatureKind>(kind)}});
    const Error error =
        Thrown([&, k = kind, text = list] { rows.Add(ExampleOf(FeatureOf("a", k, text))); });
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    EXPECT_THAT(error.message(), HasSubstr("malformed"));
  }
}

TEST(ExampleColumnsTest, AnotherKindThanTheColumnsIsNamed) {
  ExampleColumns rows({{.name = "a", .kind = FeatureKind::kFloat}});
  const Error error = Thrown([&] { rows.Add(ExampleOf(FeatureOf("a", 3, Field(1, "\x01")))); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("a"));
}

// Examples of one size usually differ only in their values, and are then not parsed again.
TEST(ExampleColumnsTest, ExamplesOfOneSizeMayDifferInTheirTags) {
  ExampleColumns rows(
      {{.name = "a", .kind = FeatureKind::kBytes}, {.name = "b", .kind = FeatureKind::kBytes}});
  for (const char* value : {"one", "two"}) rows.Add(ExampleOf(FeatureOf("a", 1, Field(1, value))));
  rows.Add(ExampleOf(FeatureOf("b", 1, Field(1, "six"))));
  rows.Add(ExampleOf(FeatureOf("a", 1, Field(1, "ten"))));
  EXPECT_EQ(rows.columns()[0].bytes, "onetwoten");
  EXPECT_THAT(rows.columns()[0].present, ElementsAre(1, 1, 0, 1));
  EXPECT_EQ(rows.columns()[1].bytes, "six");
}

std::string Int64Of(const std::string& name, uint64_t value) {
  std::string packed;
  PutVarint(value, &packed);
  return FeatureOf(name, 3, Field(1, packed));
}

TEST(ExampleColumnsTest, AFeatureThatOccursTwiceIsNamed) {
  ExampleColumns rows({{.name = "a", .kind = FeatureKind::kInt64}});
  const Error error = Thrown([&] { rows.Add(ExampleOf(Int64Of("a", 1) + Int64Of("a", 2))); });
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  EXPECT_THAT(error.message(), HasSubstr("it has the feature 'a' twice"));
  // Values of features that were not selected are not compared.
  ExampleColumns others({{.name = "c", .kind = FeatureKind::kInt64}});
  others.Add(ExampleOf(Int64Of("a", 1) + Int64Of("a", 2)));
  EXPECT_THAT(others.columns()[0].present, ElementsAre(0));
}

TEST(ExampleColumnsTest, KeepsTheSmallestAndTheLargestIntegers) {
  ExampleColumns rows({{.name = "a", .kind = FeatureKind::kInt64}});
  for (const int64_t value : {INT64_MIN, int64_t{-1}, int64_t{0}, INT64_MAX}) {
    rows.Add(ExampleOf(Int64Of("a", static_cast<uint64_t>(value))));
  }
  EXPECT_THAT(rows.columns()[0].ints, ElementsAre(INT64_MIN, -1, 0, INT64_MAX));
}

// Layouts are learned by size, with limits on mismatches, remembered names and remembered values.
// Beyond each limit, the rows must be the same as without learning.
TEST(ExampleColumnsTest, RowsDoNotDependOnWhatWasLearned) {
  ExampleColumns rows(
      {{.name = "a", .kind = FeatureKind::kInt64}, {.name = "b", .kind = FeatureKind::kInt64}});
  std::vector<int64_t> first, second;
  for (int64_t i = 0; i < 100; ++i) {
    // All examples have one size. Their feature is "a" or "b" in turn at first, then "a" for a
    // while, then "b".
    const bool is_first = i < 60 ? i % 2 == 0 : i < 80;
    rows.Add(ExampleOf(Int64Of(is_first ? "a" : "b", static_cast<uint64_t>(i))));
    (is_first ? first : second).push_back(i);
  }
  EXPECT_EQ(rows.rows(), 100);
  EXPECT_EQ(rows.columns()[0].ints, first);
  EXPECT_EQ(rows.columns()[1].ints, second);
}

TEST(ExampleColumnsTest, ReadsMoreFeaturesThanItRemembers) {
  std::string features;
  std::vector<FeatureColumn> columns;
  for (int i = 0; i < 200; ++i) {
    features += Int64Of(fmt::format("f{}", i), static_cast<uint64_t>(i));
    columns.push_back({.name = fmt::format("f{}", i), .kind = FeatureKind::kInt64});
  }
  ExampleColumns rows(std::move(columns));
  for (int row = 0; row < 3; ++row) rows.Add(ExampleOf(features));
  for (int64_t i = 0; i < 200; ++i) {
    EXPECT_THAT(rows.columns()[static_cast<size_t>(i)].ints, ElementsAre(i, i, i));
  }
}

TEST(ExampleColumnsTest, ReadsMoreValuesThanItRemembers) {
  constexpr int64_t kValues = (1 << 16) + 1;
  std::string list;
  for (int64_t i = 0; i < kValues; ++i) list += Field(1, "");
  const std::string example = ExampleOf(FeatureOf("a", 1, list));
  ExampleColumns rows({{.name = "a", .kind = FeatureKind::kBytes}});
  for (int row = 0; row < 2; ++row) rows.Add(example);
  EXPECT_THAT(rows.columns()[0].row_offsets, ElementsAre(0, kValues, 2 * kValues));
  EXPECT_EQ(rows.columns()[0].bytes, "");
}

// A learned layout must not hide damaged tags and lengths.
TEST(ExampleColumnsTest, DamageAfterGoodExamplesOfTheSameSizeIsFound) {
  const std::string good = ExampleOf(FeatureOf("a", 1, Field(1, "value")));
  const size_t name = good.find('a');
  for (size_t at = 0; at < good.find("value"); ++at) {
    ExampleColumns rows({{.name = "a", .kind = FeatureKind::kBytes}});
    rows.Add(good);
    rows.Add(good);
    std::string bad = good;
    bad[at] = '\x7f';
    if (at == name) {
      rows.Add(bad);
      EXPECT_THAT(rows.columns()[0].present, ElementsAre(1, 1, 0)) << "another feature";
    } else {
      EXPECT_EQ(CodeOf([&] { rows.Add(bad); }), ErrorCode::kDataLoss) << at;
    }
  }
}

TEST(ForEachFeatureTest, ReportsKindsAndCounts) {
  const std::string floats("\0\0\x80\x3f\0\0\0\x40", 8);
  std::string found;
  ForEachFeature(
      ExampleOf(FeatureOf("i", 3, Field(1, "\1\2\3")) + FeatureOf("f", 2, Field(1, floats)) +
                FeatureOf("b", 1, Field(1, "x") + Field(1, "")) +
                Field(1, Field(1, "n") + Field(2, "")) + FeatureOf("e", 3, "")),
      [&](std::string_view name, FeatureKind kind, int64_t values) {
        found += fmt::format("{}{}:{} ", name, static_cast<int>(kind), values);
      });
  EXPECT_EQ(found, "i3:3 f2:2 b1:2 n0:0 e3:0 ");
}

TEST(ForEachFeatureTest, EveryTruncationIsAnError) {
  const std::string whole = ExampleOf(FeatureOf("a", 3, Field(1, "\1\2\3")));
  for (size_t size = 1; size < whole.size(); ++size) {
    EXPECT_EQ(CodeOf([&] {
                ForEachFeature(whole.substr(0, size),
                               [](std::string_view, FeatureKind, int64_t) {});
              }),
              ErrorCode::kDataLoss)
        << size;
  }
}

}  // namespace
}  // namespace hearth::formats
