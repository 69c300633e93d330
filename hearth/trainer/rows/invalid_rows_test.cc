#include "hearth/trainer/rows/invalid_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "hearth/base/error.h"

namespace hearth::trainer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

void Ignore(const nlohmann::json&) {}

std::string CheckOf(const InvalidRows& invalid_rows, int64_t rows, int64_t bad,
                    bool at_end_of_epoch) {
  try {
    invalid_rows.Check(rows, bad, at_end_of_epoch);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    return error.message();
  }
  return "";
}

TEST(InvalidRowsTest, CountsRowsOfAllThreadsAndLimitsEvents) {
  std::atomic<int> events{0};
  InvalidRows invalid_rows({}, [&](const nlohmann::json&) { ++events; });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) invalid_rows.Report("r", "undecodable");
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(invalid_rows.count(), 100);
  EXPECT_EQ(events, 1);
}

TEST(InvalidRowsTest, AllowsAnyNumberWithoutALimit) {
  InvalidRows invalid_rows({}, Ignore);
  invalid_rows.Report("a", "undecodable");
  EXPECT_EQ(CheckOf(invalid_rows, 5000, 5000, true), "");
}

TEST(InvalidRowsTest, FailsAboveTheLimitWithRowsAndAReason) {
  InvalidRows invalid_rows({.rows = 1}, Ignore);
  invalid_rows.Report("a", "undecodable");
  EXPECT_EQ(CheckOf(invalid_rows, 8, 1, true), "");
  invalid_rows.Report("row-17", "wrong size");
  EXPECT_THAT(CheckOf(invalid_rows, 8, 2, false),
              AllOf(HasSubstr("2 of 8 rows cannot be used, but -maxBadRecords allows 1"),
                    HasSubstr("a, row-17 (a: undecodable)")));
}

TEST(InvalidRowsTest, ChecksAFractionFromAThousandRowsOnOrAtTheEnd) {
  InvalidRows invalid_rows({.fraction = 0.1}, Ignore);
  invalid_rows.Report("a", "undecodable");
  EXPECT_EQ(CheckOf(invalid_rows, 999, 900, false), "");
  EXPECT_THAT(CheckOf(invalid_rows, 1000, 101, false), HasSubstr("allows a fraction of 0.1"));
  EXPECT_EQ(CheckOf(invalid_rows, 1000, 100, false), "");
  EXPECT_THAT(CheckOf(invalid_rows, 9, 1, true), HasSubstr("1 of 9 rows"));
}

TEST(InvalidRowsTest, NamesAtMostTenRowsEachOnce) {
  InvalidRows invalid_rows({.rows = 0}, Ignore);
  for (int i = 0; i < 3; ++i) invalid_rows.Report("r0", "undecodable");
  for (int i = 1; i < 20; ++i) invalid_rows.Report(fmt::format("r{}", i), "undecodable");
  EXPECT_THAT(CheckOf(invalid_rows, 50, 22, false),
              AllOf(HasSubstr(": r0, r1, "), HasSubstr("r8, r9 ("), Not(HasSubstr("r10"))));
}

TEST(InvalidRowsTest, RowsReportedBeforeARestartAreNamedButNotCountedAgain) {
  InvalidRows invalid_rows({.rows = 1}, Ignore);
  invalid_rows.SetCount(7);
  invalid_rows.AddRestoredName("r0", "undecodable");
  EXPECT_EQ(invalid_rows.count(), 7);
  invalid_rows.Report("r1", "undecodable");
  EXPECT_EQ(invalid_rows.count(), 8);
  EXPECT_THAT(CheckOf(invalid_rows, 8, 2, false), HasSubstr(": r0, r1 (r0: undecodable)"));
}

TEST(InvalidRowsTest, AProcessWithoutInvalidRowsNeverThrows) {
  const InvalidRows invalid_rows({.rows = 0}, Ignore);
  EXPECT_EQ(CheckOf(invalid_rows, 50, 22, false), "");
}

}  // namespace
}  // namespace hearth::trainer
