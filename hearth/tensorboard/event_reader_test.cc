#include "hearth/tensorboard/event_reader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "hearth/base/error.h"
#include "hearth/base/testing/test_folder_testing.h"
#include "hearth/tensorboard/event_writer.h"

namespace hearth::tensorboard {
namespace {

class EventReaderTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static std::string ContentOf(const EventWriter& writer) {
    std::ifstream file(writer.path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const std::string folder_ = TestFolder() + "event_reader_test";
};

TEST_F(EventReaderTest, AHistogramIsNotAPoint) {
  EventWriter writer(folder_, 1);
  writer.Add(Histogram{.step = 3, .tag = "weights/ip/0", .least = -1, .most = 1, .counts = {1, 2}});
  writer.Add(Point{.step = 3, .tag = "loss/train", .value = 2});
  writer.Finish();
  const std::vector<Point> points = ReadEvents(ContentOf(writer), "x");
  ASSERT_EQ(points.size(), 1u);
  EXPECT_EQ(points[0].tag, "loss/train");
}

TEST_F(EventReaderTest, ARestartDropsPointsButNotTexts) {
  EventWriter writer(folder_, 1);
  for (int64_t step : {10, 20, 30}) writer.Add(Point{.step = step, .tag = "a", .value = 1});
  writer.Add(Point{.step = 30, .tag = "run/messages", .text = "lost"});
  writer.Rewind(20, 2);
  writer.Add(Point{.step = 21, .tag = "a", .value = 2});
  writer.Finish();
  std::vector<int64_t> steps;  // the point of step 30 was dropped, its text was not
  for (const Point& point : ReadEvents(ContentOf(writer), "x")) steps.push_back(point.step);
  EXPECT_EQ(steps, (std::vector<int64_t>{10, 20, 30, 21}));
}

// A damaged end results from a run that is still writing, or from a full disk.
TEST_F(EventReaderTest, ADamagedFileIsReadUpToTheDamage) {
  EventWriter writer(folder_, 1);
  for (int64_t step : {1, 2, 3}) writer.Add(Point{.step = step, .tag = "a", .value = 1});
  writer.Finish();
  const std::string bytes = ContentOf(writer);
  EXPECT_EQ(ReadEvents(std::string_view(bytes).substr(0, bytes.size() - 3), "x").size(), 2u);
  std::string damaged = bytes;
  damaged[bytes.size() - 10] ^= 1;
  EXPECT_EQ(ReadEvents(damaged, "x").size(), 2u);
}

TEST_F(EventReaderTest, AnotherKindOfFileIsRefusedByName) {
  try {
    ReadEvents("this is no event file at all", "notes.txt");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    EXPECT_NE(error.message().find("notes.txt"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace hearth::tensorboard
