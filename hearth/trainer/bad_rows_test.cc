#include "hearth/trainer/bad_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "hearth/base/error.h"

namespace hearth::trainer {
namespace {

TEST(BadRowsTest, CountsRowsOfAllThreadsAndLimitsItsEvents) {
  std::atomic<int> events{0};
  BadRows bad_rows(-1, [&](const nlohmann::json&) { ++events; });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) bad_rows.Report("r", "undecodable");
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(bad_rows.count(), 100);
  EXPECT_EQ(events, 1);
}

TEST(BadRowsTest, OneTooManyFailsWithTheRowAndTheReason) {
  BadRows bad_rows(1, [](const nlohmann::json&) {});
  bad_rows.Report("a", "undecodable");
  try {
    bad_rows.Report("row-17", "wrong size");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("row row-17 cannot be used: wrong size"));
  }
}

}  // namespace
}  // namespace hearth::trainer
