#include "hearth/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <string>
#include <vector>

#include "hearth/base/log_level.h"
#include "hearth/base/thread.h"

// An argument whose formatting throws std::bad_alloc.
struct NoMemory {};
template <>
struct fmt::formatter<NoMemory> : fmt::formatter<int> {
  template <typename Context>
  auto format(const NoMemory&, Context& context) const -> decltype(context.out()) {
    throw std::bad_alloc();
  }
};

namespace hearth {
namespace {

class LogTest : public testing::Test {
 protected:
  void SetUp() override {
    log::SetSink([this](const log::Record& record) {
      levels_.push_back(record.level);
      texts_.emplace_back(record.text);
      lines_.emplace_back(record.line);
    });
  }
  void TearDown() override { log::SetSink({}); }

  std::vector<log::Level> levels_;
  std::vector<std::string> texts_, lines_;
};

// Checks the part of a line on which Caffe's parse_log.py and extract_seconds.py rely.
TEST_F(LogTest, LinesMatchCaffesParser) {
  log::Info("Iteration {}, loss = {}", 100, 0.5);
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_THAT(lines_[0],
              testing::ContainsRegex("^I[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6} +[0-9]+ "
                                     "log_test\\.cc:[0-9]+\\] Iteration 100, loss = 0\\.5$"));
  EXPECT_EQ(texts_[0], "Iteration 100, loss = 0.5");
}

TEST_F(LogTest, RecordsBelowTheLeastLevelAreDropped) {
  log::SetLeastLevel(log::Level::kWarning);
  log::Info("dropped");
  log::Warning("kept");
  log::SetLeastLevel(log::Level::kInfo);
  log::Info("kept again");
  EXPECT_THAT(texts_, testing::ElementsAre("kept", "kept again"));
}

TEST_F(LogTest, LevelIsTheFirstLetter) {
  log::Warning("careful");
  log::Error("broken");
  ASSERT_EQ(lines_.size(), 2u);
  EXPECT_EQ(lines_[0][0], 'W');
  EXPECT_EQ(lines_[1][0], 'E');
  EXPECT_EQ(levels_[1], log::Level::kError);
}

TEST_F(LogTest, BracesInArgumentsAreNotFormattedAgain) {
  log::Info("{}", "layer { name: 'a' }");
  EXPECT_EQ(texts_.at(0), "layer { name: 'a' }");
}

TEST_F(LogTest, RecordsThatCannotBeFormattedAreDropped) {
  log::Info("{}", NoMemory());
  log::Info("the next one");
  EXPECT_THAT(texts_, testing::ElementsAre("the next one"));
}

TEST_F(LogTest, LinesOfSeveralThreadsDoNotMix) {
  {
    std::vector<Thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back("writer", [t] {
        for (int i = 0; i < 50; ++i) log::Info("thread {} line {}", t, i);
      });
    }
  }
  EXPECT_EQ(texts_.size(), 200u);
}

TEST_F(LogTest, WithoutASinkLinesAreWrittenToStderrOnly) {
  log::SetSink({});
  testing::internal::CaptureStderr();
  log::Info("hello");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::EndsWith("] hello\n"));
  EXPECT_TRUE(lines_.empty());
}

}  // namespace
}  // namespace hearth
