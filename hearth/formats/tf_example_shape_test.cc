#include "hearth/formats/tf_example_shape.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hearth::formats {
namespace {

using ShapeRun = ExampleShape::Run;

TEST(ExampleShape, MatchesNothingBeforeItHasLearnedAndAfterItForgot) {
  ExampleShape shape;
  EXPECT_FALSE(shape.Matches(""));
  shape.Learn("", {});
  EXPECT_TRUE(shape.Matches(""));
  shape.Forget();
  EXPECT_FALSE(shape.Matches(""));
}

// The bytes of runs may differ, all others may not.
TEST(ExampleShape, OnlyTheBytesOfRunsMayDiffer) {
  const std::string example = "0123456789";
  const std::vector<std::vector<ShapeRun>> all_runs = {
      {},                             // none
      {{0, 10, 0}},                   // the whole example
      {{0, 3, 0}, {7, 3, 1}},         // at both ends
      {{2, 3, 0}, {5, 2, 1}},         // adjacent
      {{4, 0, 0}, {4, 2, 0}},         // one is empty
      {{3, 4, ShapeRun::kUnwanted}},  // skipped
  };
  for (const std::vector<ShapeRun>& runs : all_runs) {
    ExampleShape shape;
    shape.Learn(example, runs);
    EXPECT_TRUE(shape.Matches(example));
    EXPECT_EQ(shape.runs().size(), runs.size());
    for (size_t at = 0; at < example.size(); ++at) {
      bool in_run = false;
      for (const ShapeRun& run : runs) in_run |= at >= run.offset && at < run.offset + run.size;
      std::string other = example;
      other[at] = 'x';
      EXPECT_EQ(shape.Matches(other), in_run) << runs.size() << " runs, byte " << at;
    }
    EXPECT_FALSE(shape.Matches(example.substr(0, 9)));
    EXPECT_FALSE(shape.Matches(example + "0"));
  }
}

TEST(ExampleShape, LearningReplacesWhatWasLearned) {
  ExampleShape shape;
  shape.Learn("abcd", {{0, 2, 0}});
  shape.Learn("wxyz", {{2, 2, 1}});
  EXPECT_FALSE(shape.Matches("..cd"));
  EXPECT_TRUE(shape.Matches("wx.."));
  ASSERT_EQ(shape.runs().size(), 1u);
  EXPECT_EQ(shape.runs()[0].column, 1);
}

}  // namespace
}  // namespace hearth::formats
