#include "hearth/base/timeline.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "hearth/base/testing/error_testing.h"

namespace hearth::timeline {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A process has only one timeline, so each test runs in a child process.
class Timeline : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "timeline.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Exit status of a child that runs `body`, then exits without cleanup.
  static int InChild(const std::function<void()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
      body();
      ::_exit(0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    return status;
  }

  // Events of the folder's only file. Adds the closing bracket that the format allows to be
  // missing.
  std::vector<json> Events() const {
    std::vector<json> events;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      std::ifstream file(entry.path());
      std::ostringstream text;
      text << file.rdbuf();
      for (const json& event : json::parse(text.str() + "{}]")) {
        if (!event.empty()) events.push_back(event);
      }
    }
    return events;
  }
  std::vector<json> Named(const std::string& name) const {
    std::vector<json> found;
    for (const json& event : Events()) {
      if (event.at("name") == name) found.push_back(event);
    }
    return found;
  }

  std::string folder_;
};

TEST_F(Timeline, EventsHaveTheFieldsOfTheTraceEventFormat) {
  InChild([&] {
    WriteTo(folder_ + "/new/folder");
    const auto begin = Clock::time_point(std::chrono::nanoseconds(5'000'000'042));
    Add({"collective", "conv1 \"w\"\n\xff", begin, begin + std::chrono::nanoseconds(1'500)},
        Details().Add("bytes", 400).Add("type", "float32"));
  });
  folder_ += "/new/folder";
  std::vector<json> spans;
  for (const json& event : Events()) {
    EXPECT_TRUE(event.at("pid").is_number_integer());
    EXPECT_TRUE(event.at("tid").is_number_integer());
    EXPECT_TRUE(event.at("args").is_object());
    if (event.at("ph") == "X") spans.push_back(event);
  }
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].at("name"), "conv1 \"w\"\n\xef\xbf\xbd");
  EXPECT_EQ(spans[0].at("cat"), "collective");
  EXPECT_EQ(spans[0].at("ts"), 5000000.042);
  EXPECT_EQ(spans[0].at("dur"), 1.5);
  EXPECT_EQ(spans[0].at("args"), (json{{"bytes", 400}, {"type", "float32"}}));
  folder_ = std::filesystem::path(folder_).parent_path().parent_path();
}

TEST_F(Timeline, WarnsOnceOfLostEvents) {
  const std::string log = folder_ + "/log", events = folder_ + "/events";
  InChild([&] {
    const int file = ::open(log.c_str(), O_WRONLY | O_CREAT, 0600);
    ::dup2(file, STDERR_FILENO);
    WriteTo(events);
    volatile size_t longer_than_any_string = SIZE_MAX / 2;
    for (int i = 0; i < 2; ++i) Add({"step", {log.data(), longer_than_any_string}, {}, {}});
    Add({"step", "whole", {}, {}});
  });
  std::ostringstream text;
  text << std::ifstream(log).rdbuf();
  const std::string lines = text.str();
  EXPECT_THAT(lines, HasSubstr("the timeline lacks events"));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1) << lines;
  std::filesystem::remove(log);
  folder_ = events;
  EXPECT_EQ(Named("whole").size(), 1u);
  folder_ = std::filesystem::path(events).parent_path();
}

TEST_F(Timeline, AKilledProcessLeavesItsEvents) {
  const int status = InChild([&] {
    ::setenv("HEARTH_TIMELINE", folder_.c_str(), 1);
    for (int i = 0; i < 1000; ++i) const Span span("step", "forward");
    ::raise(SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(Named("forward").size(), 1000u);
}

TEST_F(Timeline, ThreadsAndTheProcessHaveTheirNames) {
  InChild([&] {
    WriteTo(folder_);
    NameProcess("rank 3 on host b");
    NameProcess("another");
    std::thread([] {
      ::pthread_setname_np(::pthread_self(), "gradients");
      const Span first("step", "a"), second("step", "b");
    }).join();
  });
  const auto process = Named("process_name");
  ASSERT_EQ(process.size(), 1u);
  EXPECT_EQ(process[0].at("args").at("name"), "rank 3 on host b");
  const auto thread = Named("thread_name");
  ASSERT_EQ(thread.size(), 1u);
  EXPECT_EQ(thread[0].at("args").at("name"), "gradients");
  EXPECT_EQ(thread[0].at("tid"), Named("a")[0].at("tid"));
}

TEST_F(Timeline, NothingIsWrittenUnlessEnabled) {
  const int status = InChild([&] {
    const Span span("step", "forward");
    NameProcess("rank 0");
    if (On()) ::_exit(1);
  });
  EXPECT_EQ(status, 0);
}

TEST_F(Timeline, AnUnwritableFolderIsNotFatal) {
  const std::string file = folder_ + "/file";
  std::ofstream(file) << "no folder";
  const int status = InChild([&] {
    ::setenv("HEARTH_TIMELINE", file.c_str(), 1);
    const Span span("step", "forward");
    if (On()) ::_exit(1);
  });
  EXPECT_EQ(status, 0);
}

TEST_F(Timeline, ARemoteFolderIsRejected) {
  EXPECT_EQ(Thrown([] { WriteTo("hdfs://host/run"); }).code(), ErrorCode::kInvalidArgument);
}

TEST_F(Timeline, AChildDoesNotWriteAsItsParent) {
  InChild([&] {
    WriteTo(folder_);
    InChild([] { const Span span("step", "of the child"); });
    const Span span("step", "of the parent");
  });
  EXPECT_EQ(Named("of the child").size(), 0u);
  EXPECT_EQ(Named("of the parent").size(), 1u);
}

}  // namespace
}  // namespace hearth::timeline
