#include "hearth/collective/group.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/base/timeline.h"
#include "hearth/collective/testing/ranks_testing.h"

namespace hearth::collective {
namespace {

TEST(GroupTest, DescribesItsTransport) {
  const auto expect = [](Wiring wiring, int ranks, const char* description, int host_index_of_1) {
    RunGroups(wiring, ranks, [&](Group& group) {
      EXPECT_EQ(group.world(), ranks);
      EXPECT_EQ(group.description(), description);
      if (group.rank() == 1) {
        EXPECT_EQ(group.host_index(), host_index_of_1);
      }
    });
  };
  expect(Wiring::kShared, 2, "shared memory", 1);
  expect(Wiring::kTcp, 2, "tcp", 0);
  expect(Wiring::kPairs, 4, "shared memory within 2 hosts, tcp between them", 1);
}

TEST(GroupTest, AllocatesZeroedMemoryThatOperationsUseInPlace) {
  RunGroups(Wiring::kShared, 3, [](Group& group) {
    auto* values = static_cast<float*>(group.Allocate(1000 * sizeof(float)));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(values) % 4096, 0U);
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(values[i], 0);
    values[999] = 1;
    group.AllReduce(values, 1000, DataType::kFloat32, Op::kSum, Soon());
    EXPECT_EQ(values[999], 3);
  });
}

// Ranks that pass different offsets of the shared memory would sum the wrong values.
TEST(GroupTest, ReportsRanksThatPassOtherPositionsOfTheirAllocation) {
  RunGroups(Wiring::kShared, 2, [](Group& group) {
    auto* values = static_cast<float*>(group.Allocate(10 * sizeof(float)));
    const Error error = Thrown(
        [&] { group.AllReduce(values + group.rank(), 5, DataType::kFloat32, Op::kSum, Soon()); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_TRUE(group.broken());
  });
}

TEST(GroupTest, KeepsOnlyTheFirstReasonOfAnAbort) {
  const auto groups = Group::ConnectThreads(1);
  EXPECT_FALSE(groups[0]->broken());
  groups[0]->Abort("first");
  groups[0]->Abort("second");
  const Error error = Thrown([&] { groups[0]->Allocate(10); });
  EXPECT_EQ(error.code(), ErrorCode::kAborted);
  EXPECT_EQ(error.message(), "first");
}

// The events of a child process, which records its operations in `folder`.
std::vector<nlohmann::json> RecordedEvents(const std::filesystem::path& folder,
                                           const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    timeline::WriteTo(folder);
    body();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  std::vector<nlohmann::json> events;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    for (const auto& event : nlohmann::json::parse(text.str() + "{}]")) {
      if (event.contains("cat") && event["cat"] == "collective") events.push_back(event);
    }
  }
  return events;
}

TEST(GroupTimeline, HasTheOperationsAndTheirFailure) {
  std::string folder = ::testing::TempDir() + "group_timeline_XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::vector<nlohmann::json> events = RecordedEvents(folder, [] {
    const auto groups = Group::ConnectThreads(1);
    float values[] = {1, 2};
    groups[0]->Run(
        {.operation = Operation::kAllReduce, .output = values, .count = 2, .name = "conv1"},
        Soon());
    groups[0]->Barrier(Soon());
    groups[0]->Abort("enough");
    EXPECT_EQ(CodeOf([&] { groups[0]->Allocate(10); }), ErrorCode::kAborted);
  });
  std::filesystem::remove_all(folder);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0]["name"], "all-reduce 'conv1'");
  EXPECT_EQ(events[0]["args"]["bytes"], 8);
  EXPECT_EQ(events[0]["args"]["type"], "float32");
  EXPECT_EQ(events[0]["args"]["step"], 1);
  EXPECT_FALSE(events[0]["args"].contains("error"));
  EXPECT_EQ(events[1]["args"]["step"], 2);
  EXPECT_EQ(events[2]["args"]["error"], "enough");
}

}  // namespace
}  // namespace hearth::collective
