// Examples byte by byte, as a file may hold them; batch/tf_example_encode_test.cc has round trips.
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

// One feature: `kind` 1 bytes, 2 floats, 3 integers; `list` is the message with the values.
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

// Examples of one size usually differ in their values only, and are then not parsed again.
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

}  // namespace
}  // namespace hearth::formats
