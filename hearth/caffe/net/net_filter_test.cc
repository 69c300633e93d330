#include "hearth/caffe/net/net_filter.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/caffe/upgrade/net_file.h"

namespace hearth::caffe {
namespace {

// Returns true if a layer with these rules is in a net with this state.
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

}  // namespace
}  // namespace hearth::caffe
