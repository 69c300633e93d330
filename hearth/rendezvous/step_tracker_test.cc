#include "hearth/rendezvous/step_tracker.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hearth/base/testing/error_testing.h"

namespace hearth::rendezvous {
namespace {

TEST(StepTracker, NamesTheRanksBehind) {
  StepTracker tracker;
  EXPECT_TRUE(tracker.RanksBehind("g", 0).empty());
  tracker.Record({"g", 1, 4, 7});
  tracker.Record({"g", 3, 4, 8});
  tracker.Record({"g", 0, 4, 6});
  EXPECT_EQ(tracker.RanksBehind("g", 7), (std::vector{0, 2}));
  EXPECT_EQ(tracker.RanksBehind("g", 0), (std::vector{2}));
  EXPECT_EQ(tracker.RanksBehind("g", 9), (std::vector{0, 1, 2, 3}));
}

TEST(StepTracker, ALateReportDoesNotGoBack) {
  StepTracker tracker;
  tracker.Record({"g", 0, 1, 8});
  tracker.Record({"g", 0, 1, 2});
  EXPECT_TRUE(tracker.RanksBehind("g", 8).empty());
}

TEST(StepTracker, GroupsDoNotMix) {
  StepTracker tracker;
  tracker.Record({"g", 0, 2, 1});
  tracker.Record({"h", 1, 2, 1});
  EXPECT_EQ(tracker.RanksBehind("g", 1), (std::vector{1}));
  EXPECT_EQ(tracker.RanksBehind("h", 1), (std::vector{0}));
}

TEST(StepTracker, RejectsInvalidRanks) {
  StepTracker tracker;
  for (const GroupStep& each : std::vector<GroupStep>{{std::string(65, 'g'), 0, 2, 0},
                                                      {"g", -1, 2, 0},
                                                      {"g", 2, 2, 0},
                                                      {"g", 0, 0, 0},
                                                      {"g", 0, StepTracker::kMaxRanks + 1}}) {
    EXPECT_EQ(Thrown([&] { tracker.Record(each); }).code(), ErrorCode::kInvalidArgument);
  }
  tracker.Record({"g", 0, 2, 0});
  EXPECT_EQ(Thrown([&] { tracker.Record({"g", 0, 3, 0}); }).code(), ErrorCode::kInvalidArgument);
}

TEST(StepTracker, DropsTheLeastRecentlyUsedGroup) {
  StepTracker tracker;
  tracker.Record({"old", 0, 2, 1});
  tracker.Record({"kept", 0, 2, 1});
  tracker.Record({"old", 0, 2, 2});
  for (size_t i = 0; i + 1 < StepTracker::kMaxGroups; ++i) {
    tracker.Record({std::to_string(i), 0, 1, 1});
  }
  EXPECT_TRUE(tracker.RanksBehind("kept", 1).empty());
  EXPECT_EQ(tracker.RanksBehind("old", 1), (std::vector{1}));
}

TEST(StepTracker, AcceptsTheLargestGroupAndTheLongestName) {
  StepTracker tracker;
  const std::string name(StepTracker::kMaxNameBytes, 'g');
  tracker.Record({name, StepTracker::kMaxRanks - 1, StepTracker::kMaxRanks, 0});
  const std::vector<int> behind = tracker.RanksBehind(name, 0);
  EXPECT_EQ(behind.size(), static_cast<size_t>(StepTracker::kMaxRanks) - 1);
  EXPECT_EQ(behind.back(), StepTracker::kMaxRanks - 2);
}

TEST(StepTracker, ARefusedReportChangesNothing) {
  StepTracker tracker;
  tracker.Record({"g", 0, 2, 5});
  for (const GroupStep& each : std::vector<GroupStep>{{"g", 1, 3, 9}, {"g", 2, 2, 9}}) {
    EXPECT_EQ(CodeOf([&] { tracker.Record(each); }), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(tracker.RanksBehind("g", 5), (std::vector{1}));
  EXPECT_THROW(tracker.Record({"new", 2, 2, 0}), Error);
  EXPECT_TRUE(tracker.RanksBehind("new", 0).empty());
}

}  // namespace
}  // namespace hearth::rendezvous
