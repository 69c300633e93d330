#include "hearth/rendezvous/attendance.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hearth/base/error_testing.h"

namespace hearth::rendezvous {
namespace {

TEST(Attendance, NamesTheRanksThatHaveNotComeSoFar) {
  Attendance attendance;
  EXPECT_TRUE(attendance.Absent("g", 0).empty());
  attendance.Come({"g", 1, 4, 7});
  attendance.Come({"g", 3, 4, 8});
  attendance.Come({"g", 0, 4, 6});
  EXPECT_EQ(attendance.Absent("g", 7), (std::vector{0, 2}));
  EXPECT_EQ(attendance.Absent("g", 0), (std::vector{2}));
  EXPECT_EQ(attendance.Absent("g", 9), (std::vector{0, 1, 2, 3}));
}

TEST(Attendance, ANewsThatIsLateTakesNothingBack) {
  Attendance attendance;
  attendance.Come({"g", 0, 1, 8});
  attendance.Come({"g", 0, 1, 2});
  EXPECT_TRUE(attendance.Absent("g", 8).empty());
}

TEST(Attendance, GroupsDoNotMix) {
  Attendance attendance;
  attendance.Come({"g", 0, 2, 1});
  attendance.Come({"h", 1, 2, 1});
  EXPECT_EQ(attendance.Absent("g", 1), (std::vector{1}));
  EXPECT_EQ(attendance.Absent("h", 1), (std::vector{0}));
}

TEST(Attendance, RefusesRanksThatCannotBe) {
  Attendance attendance;
  for (const Attendee& each : std::vector<Attendee>{{std::string(65, 'g'), 0, 2, 0},
                                                    {"g", -1, 2, 0},
                                                    {"g", 2, 2, 0},
                                                    {"g", 0, 0, 0},
                                                    {"g", 0, Attendance::kMostRanks + 1}}) {
    EXPECT_EQ(Thrown([&] { attendance.Come(each); }).code(), ErrorCode::kInvalidArgument);
  }
  attendance.Come({"g", 0, 2, 0});
  EXPECT_EQ(Thrown([&] { attendance.Come({"g", 0, 3, 0}); }).code(), ErrorCode::kInvalidArgument);
}

TEST(Attendance, ForgetsTheGroupThatIsLongestUnused) {
  Attendance attendance;
  attendance.Come({"old", 0, 2, 1});
  attendance.Come({"kept", 0, 2, 1});
  attendance.Come({"old", 0, 2, 2});
  for (size_t i = 0; i + 1 < Attendance::kMostGroups; ++i) {
    attendance.Come({std::to_string(i), 0, 1, 1});
  }
  EXPECT_TRUE(attendance.Absent("kept", 1).empty());
  EXPECT_EQ(attendance.Absent("old", 1), (std::vector{1}));
}

}  // namespace
}  // namespace hearth::rendezvous
