#include "hearth/tensorboard/run_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>

#include "hearth/base/log.h"
#include "hearth/base/testing/test_folder_testing.h"
#include "hearth/tensorboard/event_reader.h"

namespace hearth::tensorboard {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::map<std::string, double> Values(const RunRecord::Change& change) {
  std::map<std::string, double> values;
  for (const Point& point : change.points) values[point.tag] = point.value;
  return values;
}

json Progress(int64_t iteration, int64_t invalid_rows = 0) {
  return {{"event", "progress"},
          {"iteration", iteration},
          {"loss", 0.5},
          {"lr", 0.25},
          {"images_per_s", 100},
          {"invalid_rows", invalid_rows},
          {"outputs", {{"loss", {0.75}}}}};
}

TEST(RunRecordTest, ProgressIsConvertedToPoints) {
  RunRecord record("", 1);
  const auto change = record.Take(Progress(7), 5);
  EXPECT_THAT(Values(change),
              ElementsAre(Pair("loss/train", 0.75), Pair("run/images_per_s", 100),
                          Pair("run/learning_rate", 0.25), Pair("run/smoothed_loss", 0.5)));
  EXPECT_EQ(change.points[0].step, 7);
  EXPECT_EQ(change.points[0].at, 5);
}

TEST(RunRecordTest, InvalidRowsAreReportedWhenTheirNumberChanges) {
  RunRecord record("", 1);
  EXPECT_EQ(Values(record.Take(Progress(1, 2), 5))["run/invalid_rows"], 2);
  EXPECT_EQ(Values(record.Take(Progress(2, 2), 5)).count("run/invalid_rows"), 0u);
}

TEST(RunRecordTest, TestNetsAndValuesHaveSeparateTags) {
  RunRecord record("", 1);
  json event = {{"event", "validation"},
                {"iteration", 20},
                {"outputs", {{"accuracy", {0.9}}, {"ip", {1, nullptr}}, {"map", json::array()}}}};
  for (int i = 0; i < 1000; ++i) event["outputs"]["map"].push_back(i);
  auto values = Values(record.Take(event, 5));
  EXPECT_EQ(values.size(), 3u);
  EXPECT_EQ(values["accuracy/test"], 0.9);
  EXPECT_EQ(values["ip/test/0"], 1);
  EXPECT_TRUE(std::isnan(values["ip/test/1"]));
  event["net"] = 1;
  EXPECT_EQ(Values(record.Take(event, 5))["accuracy/test_1"], 0.9);
}

TEST(RunRecordTest, ARestartRewindsToTheRanksFirstStep) {
  RunRecord record("", 1);
  EXPECT_FALSE(record.Take({{"event", "ready"}, {"iteration", 0}}, 1).back_to);
  record.Take(Progress(30), 2);
  const auto lost = record.Take({{"event", "restart"}, {"reason", "lost"}, {"generation", 1}}, 3);
  ASSERT_EQ(lost.points.size(), 2u);
  EXPECT_EQ(lost.points[0].value, 1);
  EXPECT_EQ(lost.points[1].text, "lost");
  const auto again = record.Take({{"event", "ready"}, {"iteration", 20}}, 4);
  EXPECT_EQ(again.back_to, 20);
  // The rewind does not change the number of restarts.
  ASSERT_EQ(again.points.size(), 1u);
  EXPECT_EQ(again.points[0].tag, "run/restarts");
  EXPECT_EQ(again.points[0].step, 20);
}

TEST(RunRecordTest, InvalidRowsAreReportedAgainAfterARestart) {
  RunRecord record("", 1);
  record.Take(Progress(30, 2), 2);
  record.Take({{"event", "ready"}, {"iteration", 20}}, 4);
  EXPECT_EQ(Values(record.Take(Progress(21, 2), 5))["run/invalid_rows"], 2);
}

TEST(RunRecordTest, AReportHasItsOwnTagsAndStep) {
  RunRecord record("", 1);
  const json values = {{"val/loss", 0.5}, {"rank1/loss", nullptr}};
  const auto change = record.Take({{"event", "report"}, {"step", 30}, {"values", values}}, 2);
  ASSERT_EQ(change.points.size(), 2u);
  EXPECT_TRUE(std::isnan(change.points[0].value));
  EXPECT_EQ(change.points[0].tag, "rank1/loss");
  EXPECT_EQ(change.points[1].value, 0.5);
  // A slow rank reports its own, lower step. The run was not rewound.
  const auto late = record.Take({{"event", "report"}, {"step", 7}, {"values", values}}, 3);
  EXPECT_EQ(late.points[0].step, 7);
  EXPECT_EQ(record.Take({{"event", "ready"}, {"iteration", 29}}, 4).back_to, 29);
}

TEST(RunRecordTest, TheFileHasTheSamePoints) {
  const std::string folder = TestFolder() + "run_record_test";
  RunRecord record(folder, 1);
  record.Take({{"event", "net"}, {"layers", {{{"name", "a"}, {"type", "b"}, {"inputs", {"c"}}}}}},
              1);
  record.Take(Progress(30), 2);
  record.Take({{"event", "log"}, {"level", "W"}, {"text", "mind"}}, 2);
  record.Take({{"event", "log"}, {"level", "I"}, {"text", "never mind"}}, 2);
  record.Take({{"event", "note"}, {"text", "dataset.train.rows: 9"}}, 2);
  record.Take({{"event", "ready"}, {"iteration", 20}}, 4);
  record.Take(Progress(21), 5);
  record.Finish();
  record.Take(Progress(22), 6);  // not written, because the file is complete
  std::ifstream file(record.path(), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::map<std::string, int64_t> steps;
  for (const Point& point : ReadEvents(bytes, "x")) steps[point.tag + point.text] = point.step;
  EXPECT_THAT(steps, ElementsAre(Pair("loss/train", 21), Pair("run/images_per_s", 21),
                                 Pair("run/learning_rate", 21),
                                 Pair("run/messagesdataset.train.rows: 9", 30),
                                 Pair("run/messagesmind", 30), Pair("run/smoothed_loss", 21)));
  std::filesystem::remove_all(folder);
}

TEST(RunRecordTest, AFullDiskEndsTheFileButNotTheTraining) {
  std::string log;
  log::SetSink([&](const log::Record& record) { log += record.text; });
  const std::string folder = TestFolder() + "run_record_full";
  RunRecord record(folder, 1);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit tiny{.rlim_cur = 60, .rlim_max = before.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &tiny);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(record.Take(Progress(i), 2).points.size(), 4u);
  setrlimit(RLIMIT_FSIZE, &before);
  log::SetSink({});
  EXPECT_THAT(log, HasSubstr("event file ends here: cannot write "));
  EXPECT_EQ(log.find("ends here"), log.rfind("ends here"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace hearth::tensorboard
