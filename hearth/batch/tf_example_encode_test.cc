#include "hearth/batch/tf_example_encode.h"

#include <gmock/gmock.h>

#include <random>

#include "hearth/base/testing/error_testing.h"
#include "hearth/batch/batch_builder.h"
#include "hearth/formats/tf_example.h"

namespace hearth::batch {
namespace {

using formats::ExampleColumns;
using formats::FeatureColumn;
using formats::FeatureKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

FeatureColumn Want(std::string name, FeatureKind kind) {
  return {.name = std::move(name), .kind = kind};
}

std::vector<std::string> Encode(BatchBuilder& rows) {
  std::vector<std::string> examples;
  EncodeExamples(*rows.Build(), [&](std::string_view example) { examples.emplace_back(example); });
  return examples;
}

std::vector<std::string> Sample() {
  BatchBuilder rows;
  return Encode(rows.AddInt64("n", {7, -1, 0}, {false, false, true})
                    .AddFloatList("x", {{1, 2}, {}, {3}})
                    .AddString("s", {"a", "", "ccc"})
                    .AddDouble("d", {0.5, 1.5, 2.5}));
}

TEST(TfExample, RowsRoundTripAsColumns) {
  ExampleColumns rows({Want("n", FeatureKind::kInt64), Want("x", FeatureKind::kFloat),
                       Want("s", FeatureKind::kBytes), Want("d", FeatureKind::kFloat)});
  for (const std::string& example : Sample()) rows.Add(example);
  const auto& columns = rows.columns();
  EXPECT_THAT(columns[0].ints, ElementsAre(7, -1));
  EXPECT_THAT(columns[0].present, ElementsAre(1, 1, 0));
  EXPECT_THAT(columns[0].row_offsets, ElementsAre(0, 1, 2, 2));
  EXPECT_THAT(columns[1].floats, ElementsAre(1, 2, 3));
  EXPECT_THAT(columns[1].row_offsets, ElementsAre(0, 2, 2, 3));
  EXPECT_THAT(columns[1].present, ElementsAre(1, 1, 1));
  EXPECT_EQ(columns[2].bytes, "accc");
  EXPECT_THAT(columns[2].byte_offsets, ElementsAre(0, 1, 1, 4));
  EXPECT_THAT(columns[3].floats, ElementsAre(0.5, 1.5, 2.5));
}

// An int64 feature "a" with the values 1 and 300, packed and unpacked, as in protobuf's
// documentation of the encoding.
TEST(TfExample, WireBytesEqualTensorFlows) {
  const std::string packed(
      "\x0a\x0e\x0a\x0c\x0a\x01"
      "a\x12\x07\x1a\x05\x0a\x03\x01\xac\x02",
      16);
  BatchBuilder rows;
  EXPECT_THAT(Encode(rows.AddInt32List("a", {{1, 300}})), ElementsAre(packed));
  const std::string unpacked(
      "\x0a\x0e\x0a\x0c\x0a\x01"
      "a\x12\x07\x1a\x05\x08\x01\x08\xac\x02",
      16);
  for (const std::string& example : {packed, unpacked}) {
    ExampleColumns columns({Want("a", FeatureKind::kInt64)});
    columns.Add(example);
    EXPECT_THAT(columns.columns()[0].ints, ElementsAre(1, 300));
  }
}

TEST(TfExample, FeaturesAreListedWithKindAndCount) {
  std::vector<std::string> found;
  formats::ForEachFeature(Sample()[0], [&](std::string_view name, FeatureKind kind, int64_t count) {
    found.push_back(fmt::format("{} {} {}", name, static_cast<int>(kind), count));
  });
  EXPECT_THAT(found, ElementsAre("n 3 1", "x 2 2", "s 1 1", "d 2 1"));
}

TEST(TfExample, ExamplesMayHaveTheirFeaturesInAnyOrder) {
  BatchBuilder forth;
  BatchBuilder back;
  BatchBuilder fewer;
  const std::vector<std::string> examples = {
      Encode(forth.AddInt64("a", {1}).AddInt64("other", {0}).AddInt64("b", {2}))[0],
      Encode(back.AddInt64("b", {4}).AddInt64("a", {3}).AddInt64("new", {0}))[0],
      Encode(fewer.AddInt64("other", {0}).AddInt64("b", {6}))[0]};
  ExampleColumns rows({Want("a", FeatureKind::kInt64), Want("b", FeatureKind::kInt64)});
  for (const int which : {0, 1, 1, 2, 0}) rows.Add(examples[static_cast<size_t>(which)]);
  EXPECT_THAT(rows.columns()[0].ints, ElementsAre(1, 3, 3, 1));
  EXPECT_THAT(rows.columns()[0].row_offsets, ElementsAre(0, 1, 2, 3, 3, 4));
  EXPECT_THAT(rows.columns()[1].ints, ElementsAre(2, 4, 4, 6, 2));
}

// Checks that each row decodes the same after other rows as it does alone.
TEST(TfExample, DecodingDoesNotDependOnEarlierExamples) {
  std::mt19937 random(3);
  const auto integer = [&] { return static_cast<int64_t>(random() >> (random() % 31)); };
  const auto pick = [&](std::vector<std::string> of) { return of[random() % of.size()]; };
  std::vector<std::string> examples;
  for (int i = 0; i < 3000; ++i) {
    BatchBuilder rows;
    rows.AddInt64("n", {integer()}, {random() % 8 == 0});
    rows.AddFloatList("x", {std::vector<float>(random() % 3, static_cast<float>(i))});
    rows.AddString(random() % 9 == 0 ? "other" : "s", {pick({"", "a", "bb", "cc"})});
    rows.AddInt64("unwanted", {integer()});
    rows.AddFloat("y", {static_cast<float>(i)});
    examples.push_back(Encode(rows)[0]);
  }
  const auto want = [] {
    return std::vector<FeatureColumn>{
        Want("n", FeatureKind::kInt64), Want("x", FeatureKind::kFloat),
        Want("s", FeatureKind::kBytes), Want("y", FeatureKind::kFloat)};
  };
  ExampleColumns together(want());
  std::vector<FeatureColumn> expected = want();
  for (const std::string& example : examples) {
    together.Add(example);
    ExampleColumns alone(want());
    alone.Add(example);
    for (size_t i = 0; i < expected.size(); ++i) {
      FeatureColumn &all = expected[i], &one = alone.columns()[i];
      all.floats.insert(all.floats.end(), one.floats.begin(), one.floats.end());
      all.ints.insert(all.ints.end(), one.ints.begin(), one.ints.end());
      all.bytes += one.bytes;
      for (size_t j = 1; j < one.byte_offsets.size(); ++j) {
        all.byte_offsets.push_back(all.byte_offsets.back() + one.byte_offsets[j] -
                                   one.byte_offsets[j - 1]);
      }
      all.present.push_back(one.present[0]);
      all.row_offsets.push_back(all.values());
    }
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE(expected[i].name);
    const FeatureColumn& found = together.columns()[i];
    EXPECT_EQ(found.floats, expected[i].floats);
    EXPECT_EQ(found.ints, expected[i].ints);
    EXPECT_EQ(found.bytes, expected[i].bytes);
    EXPECT_EQ(found.byte_offsets, expected[i].byte_offsets);
    EXPECT_EQ(found.present, expected[i].present);
    EXPECT_EQ(found.row_offsets, expected[i].row_offsets);
  }
}

TEST(TfExample, KindMismatchNamesTheFeature) {
  ExampleColumns rows({Want("n", FeatureKind::kFloat)});
  const Error error = Thrown([&] { rows.Add(Sample()[0]); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("feature 'n' is a int64 list"));
}

TEST(TfExample, DamagedExamplesAreRejectedWithoutACrash) {
  std::mt19937 random(7);
  const std::vector<std::string> good = Sample();
  int refused = 0;
  for (int round = 0; round < 100000; ++round) {
    std::string bad = good[random() % good.size()];
    for (int i = 0; i < 3; ++i) bad[random() % bad.size()] = static_cast<char>(random());
    if (random() % 4 == 0) bad.resize(random() % bad.size());
    ExampleColumns rows({Want("n", FeatureKind::kInt64), Want("x", FeatureKind::kFloat),
                         Want("s", FeatureKind::kBytes)});
    for (const std::string& example : good) rows.Add(example);
    try {
      rows.Add(bad);
      formats::ForEachFeature(bad, [](std::string_view, FeatureKind, int64_t) {});
    } catch (const Error& error) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 10000);
}

}  // namespace
}  // namespace hearth::batch
