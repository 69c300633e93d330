#include "hearth/formats/pickled_columns.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <string>

namespace hearth::formats {
namespace {

using namespace std::string_literals;
using ::testing::ElementsAre;

std::vector<double> Floats(const NumberColumn& column) {
  EXPECT_TRUE(column.floating);
  std::vector<double> values;
  for (const uint64_t bits : column.values) values.push_back(std::bit_cast<double>(bits));
  return values;
}

std::vector<int64_t> Ints(const NumberColumn& column) {
  EXPECT_FALSE(column.floating);
  return {column.values.begin(), column.values.end()};
}

// Each pickle is the output of pickle.dumps(rows, 5) for the rows in its comment.
TEST(ReadPickledColumns, ReadsNumbers) {
  // [1, -2, 3]
  const auto found = ReadPickledColumns(
      "\200\005\225\016\000\000\000\000\000\000\000]\224(K\001J\376\377\377\377K\003e."s);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rows, 3);
  EXPECT_FALSE(found->tuples);
  ASSERT_EQ(found->columns.size(), 1u);
  EXPECT_EQ(found->columns[0].width, 0);
  EXPECT_THAT(Ints(found->columns[0]), ElementsAre(1, -2, 3));
}

TEST(ReadPickledColumns, ReadsListsOfOneLength) {
  // [[0.5, 1.5], [2.5, -3.5]]
  const auto found = ReadPickledColumns(
      "\200\005\2251\000\000\000\000\000\000\000]\224(]\224(G\077\340\000\000\000\000\000\000G\077\370\000\000\000\000\000\000e]\224(G@\004\000\000\000\000\000\000G\300\014\000\000\000\000\000\000ee."s);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rows, 2);
  EXPECT_EQ(found->columns[0].width, 2);
  EXPECT_THAT(Floats(found->columns[0]), ElementsAre(0.5, 1.5, 2.5, -3.5));
}

TEST(ReadPickledColumns, ReadsTuplesOfListsAndNumbers) {
  // [([0.5, 1.5], 7), ([2.5, 3.5], 8)]
  const auto found = ReadPickledColumns(
      "\200\005\2259\000\000\000\000\000\000\000]\224(]\224(G\077\340\000\000\000\000\000\000G\077\370\000\000\000\000\000\000eK\007\206\224]\224(G@\004\000\000\000\000\000\000G@\014\000\000\000\000\000\000eK\010\206\224e."s);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->tuples);
  ASSERT_EQ(found->columns.size(), 2u);
  EXPECT_THAT(Floats(found->columns[0]), ElementsAre(0.5, 1.5, 2.5, 3.5));
  EXPECT_THAT(Ints(found->columns[1]), ElementsAre(7, 8));
}

TEST(ReadPickledColumns, LeavesOtherRowsToPython) {
  for (
      const std::string& pickle : {
          "\200\005\225\020\000\000\000\000\000\000\000]\224(K\001G@\004\000\000\000\000\000\000e."s,  // [1, 2.5]
          "\200\005\225\022\000\000\000\000\000\000\000]\224(]\224(K\001K\002e]\224K\003ae."s,  // [[1, 2], [3]]
          "\200\005\225\017\000\000\000\000\000\000\000]\224(K\001K\002\206\224K\003\205\224e."s,  // [(1, 2), (3,)]
          "\200\005\225\010\000\000\000\000\000\000\000]\224(K\001Ne."s,        // [1, None]
          "\200\005\225\007\000\000\000\000\000\000\000]\224(\210\211e."s,      // [True, False]
          "\200\005\225\010\000\000\000\000\000\000\000]\224\214\001a\224a."s,  // ["a"]
          "\200\005\225\016\000\000\000\000\000\000\000]\224]\224(K\001\214\001a\224ea."s,  // [[1,
                                                                                            // "a"]]
          "\200\005]\224."s,                                                                // []
          "\200\005\225\017\000\000\000\000\000\000\000]\224\212\011\000\000\000\000\000\000\000\000@a."s,  // [1 << 70]
          "\200\005\225\007\000\000\000\000\000\000\000K\001K\002\206\224."s,  // (1, 2)
      }) {
    EXPECT_FALSE(ReadPickledColumns(pickle)) << pickle;
  }
}

// A repeated list takes two bytes in the pickle, so columns could be thousands of times its size.
TEST(ReadPickledColumns, LeavesManyReferencesToOneListToPython) {
  // row = [0.5] * 1000; [row] * n
  const auto repeated = [](int rows) {
    std::string list = "]\x94(";
    for (int i = 0; i < 1000; ++i) list += "G?\xe0\0\0\0\0\0\0"s;
    std::string pickle = "\x80\5]\x94(" + list + "e";
    for (int row = 1; row < rows; ++row) pickle += "h\1";
    return pickle + "e.";
  };
  EXPECT_TRUE(ReadPickledColumns(repeated(2)));
  EXPECT_FALSE(ReadPickledColumns(repeated(1000)));
}

TEST(ReadPickledColumns, RefusesEveryTruncation) {
  const std::string whole =
      "\200\005\2259\000\000\000\000\000\000\000]\224(]\224(G\077\340\000\000\000\000\000\000G\077\370\000\000\000\000\000\000eK\007\206\224]\224(G@\004\000\000\000\000\000\000G@\014\000\000\000\000\000\000eK\010\206\224e."s;
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(ReadPickledColumns(whole.substr(0, size))) << size;
  }
}

// Returns a pickle of protocol 5 of a list with these items.
std::string ListOf(const std::string& items) { return "\x80\5]\x94("s + items + "e."; }

TEST(ReadPickledColumns, ReadsTheLargestNumberOfEachOpcode) {
  const auto found = ReadPickledColumns(ListOf(
      "K\xff"s + "M\xff\xff" + "J\xff\xff\xff\x7f" + "J\0\0\0\x80"s + "\x8a\0"s + "\x8a\1\x80" +
      "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f" + "\x8a\x08\0\0\0\0\0\0\0\x80"s));
  ASSERT_TRUE(found);
  EXPECT_THAT(Ints(found->columns[0]),
              ElementsAre(255, 65535, INT32_MAX, INT32_MIN, 0, -128, INT64_MAX, INT64_MIN));
}

TEST(ReadPickledColumns, KeepsFloatsThatAreNotFinite) {
  const auto found = ReadPickledColumns(ListOf("G\x7f\xf0\0\0\0\0\0\0"s + "G\xff\xf0\0\0\0\0\0\0"s +
                                               "G\x7f\xf8\0\0\0\0\0\0"s + "G\x80\0\0\0\0\0\0\0"s));
  ASSERT_TRUE(found);
  const auto floats = Floats(found->columns[0]);
  EXPECT_EQ(floats[0], HUGE_VAL);
  EXPECT_EQ(floats[1], -HUGE_VAL);
  EXPECT_TRUE(std::isnan(floats[2]));
  EXPECT_TRUE(std::signbit(floats[3]));
}

TEST(ReadPickledColumns, LeavesRowsWithoutNumbersToPython) {
  EXPECT_FALSE(ReadPickledColumns(ListOf("]]"))) << "[[], []]";
  EXPECT_FALSE(ReadPickledColumns(ListOf("))"))) << "[(), ()]";
  EXPECT_FALSE(ReadPickledColumns(ListOf("}}"))) << "[{}, {}]";
  EXPECT_FALSE(ReadPickledColumns(ListOf("](](K\1ee"))) << "[[[1]]]";
  EXPECT_FALSE(ReadPickledColumns(ListOf("K\1K\2\x86](K\1K\2e"))) << "[(1, 2), [1, 2]]";
}

TEST(ReadPickledColumns, RefusesUnknownMemoEntriesAndUnbalancedMarks) {
  for (const std::string& items : {"K\1h\7"s, "j\xff\xff\xff\xff"s, "(K\1"s, "K\1t"s, "K\1q\5"s}) {
    EXPECT_FALSE(ReadPickledColumns(ListOf(items))) << items;
  }
  EXPECT_FALSE(ReadPickledColumns("\x80\5]\x94K\1e.")) << "no mark";
  EXPECT_FALSE(ReadPickledColumns("\x80\5e.")) << "nothing to append to";
}

}  // namespace
}  // namespace hearth::formats
