#include "hearth/storage/spool_file.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "hearth/base/testing/error_testing.h"

namespace hearth::storage {
namespace {

std::string ContentOf(const SpoolFile& file) {
  std::string bytes(file.size(), '\0');
  EXPECT_EQ(::pread(file.fd(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  return bytes;
}

TEST(SpoolFileTest, KeepsItsBytesWithoutAName) {
  const std::string folder = ::testing::TempDir() + "spool_file_test";
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

// The remains of a failed upload are removed.
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

}  // namespace
}  // namespace hearth::storage
