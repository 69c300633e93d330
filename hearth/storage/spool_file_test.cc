#include "hearth/storage/spool_file.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "hearth/base/testing/error_testing.h"
#include "hearth/base/testing/test_folder_testing.h"

namespace hearth::storage {
namespace {

std::string ContentOf(const SpoolFile& file) {
  std::string bytes(file.size(), '\0');
  EXPECT_EQ(::pread(file.fd(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  return bytes;
}

TEST(SpoolFileTest, KeepsItsBytesWithoutAName) {
  const std::string folder = TestFolder() + "spool_file_test";
  std::filesystem::create_directories(folder);
  setenv("SPARK_EXECUTOR_DIRS", ("/nowhere:" + folder).c_str(), 1);
  {
    SpoolFile file;
    file.Append("one ");
    file.Append("two");
    EXPECT_EQ(ContentOf(file), "one two");
    EXPECT_TRUE(std::filesystem::is_empty(folder));
    const std::string link =
        std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file.fd()));
    EXPECT_THAT(link, ::testing::StartsWith(folder)) << "the first folder that can be written";
  }
  unsetenv("SPARK_EXECUTOR_DIRS");
  std::filesystem::remove_all(folder);
}

TEST(SpooledOutputTest, IsUploadedByCommitOnly) {
  std::string uploaded;
  int discarded = 0;
  const SpooledOutput::Steps steps = {
      .upload = [&](const SpoolFile& file) { uploaded = ContentOf(file); },
      .discard = [&] { ++discarded; }};
  {
    SpooledOutput output(steps);
    output.Append("bytes");
  }
  EXPECT_EQ(uploaded, "");
  EXPECT_EQ(discarded, 1);
  {
    SpooledOutput output(steps);
    output.Append("bytes");
    output.Commit();
  }
  EXPECT_EQ(uploaded, "bytes");
  EXPECT_EQ(discarded, 1);
}

// discard() removes what a failed upload has left.
TEST(SpooledOutputTest, IsDiscardedIfTheUploadFails) {
  int discarded = 0;
  {
    SpooledOutput output({.upload = [](const SpoolFile&) { Throw(ErrorCode::kUnavailable, "x"); },
                          .discard = [&] { ++discarded; }});
    EXPECT_EQ(CodeOf([&] { output.Commit(); }), ErrorCode::kUnavailable);
    EXPECT_EQ(discarded, 0);
  }
  EXPECT_EQ(discarded, 1);
}

// Limits the size of files that this process writes. A write beyond the limit fails, as on a full
// disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  sighandler_t handler_;
  rlimit before_{};
};

TEST(SpooledOutputTest, AFullDiskIsReportedWithItsFolderAndNothingIsUploaded) {
  int uploads = 0, discarded = 0;
  {
    SpooledOutput output(
        {.upload = [&](const SpoolFile&) { ++uploads; }, .discard = [&] { ++discarded; }});
    output.Append("bytes");
    const FileSizeLimit limit(1 << 20);
    const Error error = Thrown([&] { output.Append(std::string(2 << 20, 'x')); });
    EXPECT_THAT(error.message(), ::testing::HasSubstr("the spool file in /"));
  }
  EXPECT_EQ(uploads, 0);
  EXPECT_EQ(discarded, 1);
}

TEST(SpoolFileTest, ItsSizeCountsOnlyWhatWasWritten) {
  SpoolFile file;
  EXPECT_EQ(file.size(), 0u);
  file.Append("");
  EXPECT_EQ(file.size(), 0u);
  file.Append("one");
  {
    const FileSizeLimit limit(1 << 20);
    Thrown([&] { file.Append(std::string(2 << 20, 'x')); });
  }
  EXPECT_EQ(file.size(), 3u);
  EXPECT_EQ(ContentOf(file), "one");
}

TEST(SpoolFileTest, IsInTmpIfNoOtherFolderIsThere) {
  const char* before = getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TMPDIR", "/nowhere", 1);
  setenv("SPARK_EXECUTOR_DIRS", "/nowhere/a:/proc", 1);
  const SpoolFile file;
  const std::string link =
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file.fd()));
  EXPECT_THAT(link, ::testing::StartsWith("/tmp/"));
  unsetenv("SPARK_EXECUTOR_DIRS");
  unsetenv("TMPDIR");
  if (before != nullptr) setenv("TMPDIR", kept.c_str(), 1);
}

// Each Commit uploads the whole file, so a failed upload can be repeated.
TEST(SpooledOutputTest, AFailedUploadCanBeRepeated) {
  int attempts = 0, discarded = 0;
  std::string uploaded;
  {
    SpooledOutput output({.upload =
                              [&](const SpoolFile& file) {
                                Require(++attempts > 1, ErrorCode::kUnavailable, "x");
                                uploaded = ContentOf(file);
                              },
                          .discard = [&] { ++discarded; }});
    output.Append("bytes");
    EXPECT_EQ(CodeOf([&] { output.Commit(); }), ErrorCode::kUnavailable);
    output.Commit();
  }
  EXPECT_EQ(uploaded, "bytes");
  EXPECT_EQ(discarded, 0);
}

}  // namespace
}  // namespace hearth::storage
