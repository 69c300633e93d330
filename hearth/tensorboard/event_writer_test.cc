#include "hearth/tensorboard/event_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "hearth/base/error.h"
#include "hearth/base/testing/test_folder_testing.h"
#include "hearth/tensorboard/event_reader.h"

namespace hearth::tensorboard {
namespace {

using ::testing::HasSubstr;

class EventWriterTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static std::string Bytes(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::vector<Point> Read(const std::string& path) { return ReadEvents(Bytes(path), path); }

  const std::string folder_ = TestFolder() + "event_writer_test/of/a run";
};

TEST_F(EventWriterTest, FlushedDataIsReadableWhileTheFileIsOpen) {
  EventWriter writer(folder_, 1.5e9);
  EXPECT_THAT(writer.path(), HasSubstr("/events.out.tfevents.1500000000."));
  writer.Add(Point{.at = 1.5e9 + 0.25, .step = 7, .tag = "loss/train", .value = 0.5});
  writer.Add(
      Point{.at = 2, .step = int64_t{1} << 40, .tag = "run/messages", .text = "a rank went away"});
  writer.AddGraph(std::vector<GraphNode>{{"ip", "InnerProduct", {"data"}}}, 3);
  writer.Flush();
  const std::vector<Point> points = Read(writer.path());
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].at, 1.5e9 + 0.25);
  EXPECT_EQ(points[0].step, 7);
  EXPECT_EQ(points[0].tag, "loss/train");
  EXPECT_EQ(points[0].value, 0.5);
  EXPECT_EQ(points[1].step, int64_t{1} << 40);
  EXPECT_EQ(points[1].text, "a rank went away");
}

TEST_F(EventWriterTest, NanAndInfinityRoundTrip) {
  EventWriter writer(folder_, 1);
  writer.Add(Point{.tag = "a", .value = std::nan("")});
  writer.Add(Point{.tag = "a", .value = -INFINITY});
  writer.Finish();
  const std::vector<Point> points = Read(writer.path());
  ASSERT_EQ(points.size(), 2u);
  EXPECT_TRUE(std::isnan(points[0].value));
  EXPECT_EQ(points[1].value, -INFINITY);
}

TEST_F(EventWriterTest, AnInvalidFolderIsNamed) {
  try {
    EventWriter writer("/proc/none", 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("/proc/none/events.out.tfevents."));
  }
}

TEST_F(EventWriterTest, SimultaneousWritersUseDifferentFiles) {
  EventWriter first(folder_, 1);
  EXPECT_THROW(EventWriter(folder_, 1), Error);
}

}  // namespace
}  // namespace hearth::tensorboard
