#include "hearth/base/log_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "hearth/base/error.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class LogFilesTest : public testing::Test {
 protected:
  LogFilesTest() {
    char name[] = "/tmp/hearth_log_XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~LogFilesTest() override {
    log::SetLeastTerminalLevel(log::Level::kInfo);
    fs::remove_all(folder_);
  }

  std::string Text(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }

  fs::path folder_;
};

TEST_F(LogFilesTest, EachSeverityHasAFileThatIncludesHigherSeverities) {
  log::WriteFiles(folder_, "caffe");
  EXPECT_THAT(Text("caffe.INFO"), HasSubstr("Running on machine: "));
  log::Info("all is well");
  EXPECT_FALSE(fs::exists(folder_ / "caffe.WARNING"));
  log::Warning("careful");
  log::Error("broken");
  EXPECT_THAT(Text("caffe.INFO"), testing::ContainsRegex("I[^\n]*] all is well\n"
                                                         "W[^\n]*] careful\nE[^\n]*] broken\n"));
  EXPECT_THAT(Text("caffe.WARNING"), Not(HasSubstr("all is well")));
  EXPECT_THAT(Text("caffe.WARNING"), HasSubstr("] broken\n"));
  EXPECT_THAT(Text("caffe.ERROR"), Not(HasSubstr("careful")));
}

TEST_F(LogFilesTest, UsesGlogsFileNames) {
  log::WriteFiles(folder_, "caffe");
  const std::string name = fs::read_symlink(folder_ / "caffe.INFO");
  EXPECT_THAT(name, testing::MatchesRegex("caffe\\..+\\..+\\.log\\.INFO\\.[0-9]+-[0-9]+\\.[0-9]+"));
  EXPECT_THAT(name, testing::EndsWith("." + std::to_string(getpid())));
}

TEST_F(LogFilesTest, StderrMayOmitRecords) {
  log::WriteFiles(folder_, "caffe");
  log::SetLeastTerminalLevel(log::Level::kError);
  testing::internal::CaptureStderr();
  log::Info("for the file");
  log::WriteToFilesOnly(log::Level::kError, {"main.cc", 3}, "this, too");
  log::Error("for both");
  const std::string shown = testing::internal::GetCapturedStderr();
  EXPECT_THAT(shown, HasSubstr("for both"));
  EXPECT_THAT(shown, Not(HasSubstr("for the file")));
  EXPECT_THAT(shown, Not(HasSubstr("this, too")));
  EXPECT_THAT(Text("caffe.INFO"), HasSubstr("for the file"));
  EXPECT_THAT(Text("caffe.ERROR"), HasSubstr("main.cc:3] this, too\n"));
}

TEST_F(LogFilesTest, LinksInTheFolderAreNotFollowed) {
  log::WriteFiles(folder_, "caffe");
  const fs::path file = folder_ / fs::read_symlink(folder_ / "caffe.INFO");
  const std::string name = file.filename();
  const fs::path target = folder_ / "precious";
  // Places a link at every log file name of the next five seconds.
  for (int second = 0; second < 5; ++second) {
    std::string later = name;
    later.replace(name.rfind('-') + 1, 6,
                  fmt::format("{:06}", std::stoi(name.substr(name.rfind('-') + 1, 6)) + second));
    fs::remove(folder_ / later);
    fs::create_symlink(target, folder_ / later);
  }
  EXPECT_THROW(log::WriteFiles(folder_, "caffe"), Error);
  EXPECT_FALSE(fs::exists(target));
}

TEST_F(LogFilesTest, AMissingFolderIsNamed) {
  try {
    log::WriteFiles(folder_ / "missing", "caffe");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_THAT(error.message(), HasSubstr("/missing/caffe."));
  }
}

}  // namespace
}  // namespace hearth
