// Tests for behaviour that only local files have; file_system_test.cc tests all file systems alike.
#include "hearth/storage/local_files.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

#include "hearth/base/testing/error_testing.h"

namespace hearth::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LocalFilesTest : public ::testing::Test {
 protected:
  LocalFilesTest() {
    std::string name = ::testing::TempDir() + "local_files_XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~LocalFilesTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const FileStatus& each : files_.List(folder_)) {
      names.push_back(std::filesystem::path(each.uri).filename());
    }
    return names;
  }

  LocalFiles files_;
  std::string folder_;
};

TEST_F(LocalFilesTest, AWriterThatIsKilledLeavesNothing) {
  const pid_t child = fork();
  if (child == 0) {
    const auto file = files_.Create(Path("a"));
    file->Append(std::string(100'000, 'x'));
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_THAT(Names(), IsEmpty());
}

// Files in /proc report a size of 0, and pipes report none.
TEST_F(LocalFilesTest, ReadsFilesThatReportNoSize) {
  EXPECT_THAT(files_.ReadAll("/proc/self/status"), HasSubstr("Pid:"));
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  const std::string bytes(1'000'000, 'x');
  std::thread writer([&] { files_.Append(Path("pipe"), bytes); });
  EXPECT_EQ(files_.ReadAll(Path("pipe")), bytes);
  writer.join();
}

TEST_F(LocalFilesTest, ListsALinkWithoutItsTarget) {
  std::filesystem::create_symlink("nothing", Path("link"));
  EXPECT_THAT(Names(), ElementsAre("link"));
  EXPECT_FALSE(files_.Stat(Path("link")));
}

TEST_F(LocalFilesTest, RenameReplacesNoEmptyFolder) {
  files_.MakeFolders(Path("a/b"));
  files_.MakeFolders(Path("empty"));
  EXPECT_EQ(CodeOf([&] { files_.Rename(Path("a"), Path("empty")); }), ErrorCode::kInvalidArgument);
  EXPECT_THAT(Names(), ElementsAre("a", "empty"));
}

TEST_F(LocalFilesTest, AFullDiskIsReportedWithThePath) {
  const Error error = Thrown([&] { files_.Append("/dev/full", "bytes"); });
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(error.message(), HasSubstr("/dev/full"));
}

TEST_F(LocalFilesTest, ACommitWhoseFolderIsGoneFails) {
  files_.MakeFolders(Path("folder"));
  const auto file = files_.Create(Path("folder/a"));
  file->Append("bytes");
  std::filesystem::remove_all(Path("folder"));
  EXPECT_EQ(CodeOf([&] { file->Commit(); }), ErrorCode::kNotFound);
}

TEST_F(LocalFilesTest, AcceptsFileUris) {
  files_.Append("file://" + Path("a b"), "1");
  EXPECT_EQ(files_.ReadAll("file:" + Path("a b")), "1");
}

TEST_F(LocalFilesTest, AFailedWriteKeepsTheOldFile) {
  files_.Append(Path("a"), "old");
  {
    const auto file = files_.Create(Path("a"));
    file->Append("new");
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    const auto handler = ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const Error error = Thrown([&] { file->Append(std::string(2 << 20, 'x')); });
    ::setrlimit(RLIMIT_FSIZE, &before);
    ::signal(SIGXFSZ, handler);
    EXPECT_THAT(error.message(), HasSubstr(Path("a")));
  }
  EXPECT_EQ(files_.ReadAll(Path("a")), "old");
  EXPECT_THAT(Names(), ElementsAre("a"));
}

TEST_F(LocalFilesTest, APartThatIsAFileIsReported) {
  files_.Append(Path("file"), "bytes");
  const std::string below = Path("file/a");
  EXPECT_FALSE(files_.Stat(below));
  for (const auto& use : std::initializer_list<std::function<void()>>{
           [&] { files_.Open(below); }, [&] { files_.Create(below); },
           [&] { files_.Append(below, "x"); }, [&] { files_.MakeFolders(below); },
           [&] { files_.List(below); }, [&] { files_.Rename(Path("file"), below); }}) {
    EXPECT_THAT(Thrown(use).message(), HasSubstr(Path("file")));
  }
  EXPECT_EQ(files_.ReadAll(Path("file")), "bytes");
}

TEST_F(LocalFilesTest, ReadsAtTheEndAreShort) {
  files_.Append(Path("a"), "bytes");
  const auto file = files_.Open(Path("a"));
  char data[9];
  EXPECT_EQ(file->ReadAt(3, data, sizeof data), 2u);
  EXPECT_EQ(file->ReadAt(5, data, sizeof data), 0u);
  EXPECT_EQ(file->ReadAt(1000, data, sizeof data), 0u);
  EXPECT_EQ(file->ReadAt(0, data, 0), 0u);
  EXPECT_EQ(file->size(), 5u);
}

TEST_F(LocalFilesTest, TwoWritersOfOneNameDoNotMix) {
  const auto first = files_.Create(Path("a"));
  const auto second = files_.Create(Path("a"));
  first->Append("first ");
  second->Append("second");
  first->Append("writer");
  first->Commit();
  EXPECT_EQ(files_.ReadAll(Path("a")), "first writer");
  second->Commit();
  EXPECT_EQ(files_.ReadAll(Path("a")), "second");
  EXPECT_THAT(Names(), ElementsAre("a"));
}

}  // namespace
}  // namespace hearth::storage
