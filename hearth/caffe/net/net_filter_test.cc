#include "hearth/caffe/net/net_filter.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/caffe/upgrade/net_file.h"

namespace hearth::caffe {
namespace {

// Returns true if a net in this state includes a layer with these rules.
bool Included(const std::string& rules, const std::string& state) {
  const NetParameter net =
      ParseNet("state { " + state + " } layer { name: 'a' type: 'Input' " + rules + " }", "net");
  return FilterNet(net).layer_size() == 1;
}

TEST(FilterNet, FollowsPhaseLevelAndStages) {
  EXPECT_TRUE(Included("", "phase: TRAIN"));
  EXPECT_TRUE(Included("include { phase: TRAIN }", "phase: TRAIN"));
  EXPECT_FALSE(Included("include { phase: TRAIN }", "phase: TEST"));
  EXPECT_FALSE(Included("exclude { phase: TEST }", "phase: TEST"));
  EXPECT_TRUE(Included("include { min_level: 2 max_level: 4 }", "level: 3"));
  EXPECT_FALSE(Included("include { min_level: 2 }", "level: 1"));
  EXPECT_FALSE(Included("include { max_level: 2 }", "level: 3"));
  EXPECT_FALSE(Included("include { stage: 'a' stage: 'b' }", "stage: 'a'"));
  EXPECT_TRUE(Included("include { stage: 'a' not_stage: 'b' }", "stage: 'a'"));
  EXPECT_FALSE(Included("include { stage: 'a' not_stage: 'b' }", "stage: 'a' stage: 'b'"));
}

TEST(FilterNet, NeedsOnlyOneOfSeveralRules) {
  EXPECT_TRUE(
      Included("include { phase: TRAIN } include { stage: 'x' }", "phase: TEST stage: 'x'"));
  EXPECT_FALSE(
      Included("exclude { phase: TRAIN } exclude { stage: 'x' }", "phase: TEST stage: 'x'"));
}

TEST(FilterNet, RejectsBothKindsOfRules) {
  EXPECT_THROW(Included("include { } exclude { }", ""), Error);
}

TEST(FilterNet, LevelsIncludeTheirBounds) {
  for (const auto& [level, included] :
       {std::pair<int, bool>{1, false}, {2, true}, {3, true}, {4, true}, {5, false}, {-1, false}}) {
    EXPECT_EQ(Included("include { min_level: 2 max_level: 4 }", "level: " + std::to_string(level)),
              included)
        << level;
  }
  EXPECT_FALSE(Included("include { min_level: 1 }", "")) << "the level is 0 unless it is given";
  EXPECT_TRUE(Included("include { min_level: 0 max_level: 0 }", ""));
}

TEST(FilterNet, AnEmptyRuleMeetsEveryState) {
  EXPECT_TRUE(Included("include { }", "phase: TEST level: 7 stage: 'a'"));
  EXPECT_FALSE(Included("exclude { }", "phase: TRAIN"));
  EXPECT_TRUE(Included("exclude { not_stage: 'a' }", "stage: 'a'"));
}

TEST(FilterNet, KeepsTheOrderOfLayersAndEverythingElse) {
  const NetParameter net = ParseNet(
      "name: 'n' force_backward: true layer { name: 'a' type: 'Input' }"
      "layer { name: 'b' type: 'Input' exclude { phase: TRAIN } }"
      "layer { name: 'c' type: 'Input' include { phase: TRAIN } } state { phase: TRAIN }",
      "net");
  const NetParameter filtered = FilterNet(net);
  ASSERT_EQ(filtered.layer_size(), 2);
  EXPECT_EQ(filtered.layer(0).name(), "a");
  EXPECT_EQ(filtered.layer(1).name(), "c");
  EXPECT_EQ(filtered.name(), "n");
  EXPECT_TRUE(filtered.force_backward());
  EXPECT_EQ(net.layer_size(), 3);
}

TEST(FilterNet, NamesTheLayerWithBothKindsOfRules) {
  try {
    Included("include { phase: TRAIN } exclude { stage: 'x' }", "phase: TEST");
    FAIL() << "the layer was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(error.message(), "layer 'a' (Input) has include and exclude rules; use one kind");
  }
}

}  // namespace
}  // namespace hearth::caffe
