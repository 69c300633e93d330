#include "hearth/trainer/local/local_timing.h"

#include <gmock/gmock.h>

#include <fstream>
#include <string>
#include <vector>

#include "hearth/base/log.h"
#include "hearth/trainer/testing/solver_testing.h"
#include "hearth/trainer/testing/trainer_testing.h"

namespace hearth::trainer {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

class TimeLocallyTest : public ::testing::Test {
 protected:
  std::vector<std::string> Time(LocalOptions options) {
    options.model = folder_.path("net.prototxt");
    std::ofstream(options.model) << ConstantNet() << R"(
      layer { name: "train" type: "Silence" bottom: "ip" include { phase: TRAIN } })";
    options.threads = 1;
    std::vector<std::string> lines;
    log::SetSink([&](const log::Record& record) { lines.emplace_back(record.text); });
    TimeLocally(options);
    log::SetSink({});
    return lines;
  }
  static int Count(const std::vector<std::string>& lines, const std::string& start) {
    int count = 0;
    for (const std::string& line : lines) count += line.starts_with(start) ? 1 : 0;
    return count;
  }

  const TestFolder folder_;
};

TEST_F(TimeLocallyTest, LogsEachIterationAndLayerAsCaffeDoes) {
  LocalOptions options;
  options.iterations = 3;
  const std::vector<std::string> lines = Time(options);
  EXPECT_THAT(lines, Contains("Testing for 3 iterations."));
  EXPECT_EQ(Count(lines, "Iteration: "), 3);
  for (const char* layer : {"x", "ip", "loss", "train"}) {
    for (const char* direction : {"forward", "backward"}) {
      EXPECT_THAT(lines, Contains(MatchesRegex(std::string(" *") + layer + "\t" + direction +
                                               ": [0-9.e-]+ ms\\.")));
    }
  }
  for (const char* start : {"Average Forward pass: ", "Average Backward pass: ",
                            "Average Forward-Backward: ", "Total Time: "}) {
    EXPECT_EQ(Count(lines, start), 1) << start;
  }
  EXPECT_THAT(lines, Not(Contains(HasSubstr("fetch"))));
}

TEST_F(TimeLocallyTest, TimesTheNetOfTheChosenPhase) {
  LocalOptions options;
  options.iterations = 1;
  options.phase = "TEST";
  EXPECT_THAT(Time(options), Not(Contains(HasSubstr("train\tforward"))));
}

TEST_F(TimeLocallyTest, WithoutIterationsItStillRunsOnce) {
  LocalOptions options;
  options.iterations = 0;
  EXPECT_THAT(Time(options), Contains(StartsWith("Initial loss: ")));
}

}  // namespace
}  // namespace hearth::trainer
