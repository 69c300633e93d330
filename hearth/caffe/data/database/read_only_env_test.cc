#include "hearth/caffe/data/database/read_only_env.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "hearth/base/testing/test_folder_testing.h"

namespace hearth::caffe {
namespace {

namespace fs = std::filesystem;
using testing::UnorderedElementsAre;

class ReadOnlyEnvTest : public testing::Test {
 protected:
  ReadOnlyEnvTest() {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
    std::ofstream(Path("CURRENT")) << "on disk";
  }
  ~ReadOnlyEnvTest() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string Read(const std::string& name) {
    std::string text;
    return leveldb::ReadFileToString(&env_, Path(name), &text).ok() ? text : "no file";
  }
  leveldb::Status Write(const std::string& name, const std::string& text) {
    return leveldb::WriteStringToFile(&env_, text, Path(name));
  }
  std::string OnDisk(const std::string& name) const {
    std::ifstream file(Path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const std::string folder_ = TestFolder() + "read_only_env_test";
  ReadOnlyEnv env_;
};

TEST_F(ReadOnlyEnvTest, WrittenFilesAreReadButNeverOnDisk) {
  ASSERT_TRUE(Write("000005.ldb", "a table").ok());
  ASSERT_TRUE(Write("CURRENT", "in memory").ok());
  EXPECT_EQ(Read("000005.ldb"), "a table");
  EXPECT_EQ(Read("CURRENT"), "in memory");
  EXPECT_TRUE(env_.FileExists(Path("000005.ldb")));
  uint64_t size = 0;
  EXPECT_TRUE(env_.GetFileSize(Path("000005.ldb"), &size).ok());
  EXPECT_EQ(size, 7U);
  EXPECT_FALSE(fs::exists(Path("000005.ldb")));
  EXPECT_EQ(OnDisk("CURRENT"), "on disk");
}

TEST_F(ReadOnlyEnvTest, AFolderListsEachFileOnce) {
  ASSERT_TRUE(Write("CURRENT", "in memory").ok());
  ASSERT_TRUE(Write("000005.ldb", "a table").ok());
  std::vector<std::string> names;
  ASSERT_TRUE(env_.GetChildren(folder_, &names).ok());
  std::erase_if(names, [](const std::string& name) { return name[0] == '.'; });
  EXPECT_THAT(names, UnorderedElementsAre("CURRENT", "000005.ldb"));
  EXPECT_FALSE(env_.GetChildren(Path("missing"), &names).ok());
}

TEST_F(ReadOnlyEnvTest, FilesOnDiskAreNotRemovedOrReplaced) {
  EXPECT_TRUE(env_.RemoveFile(Path("CURRENT")).ok());
  EXPECT_EQ(Read("CURRENT"), "on disk");
  ASSERT_TRUE(Write("CURRENT.tmp", "new").ok());
  EXPECT_TRUE(env_.RenameFile(Path("CURRENT.tmp"), Path("CURRENT")).ok());
  EXPECT_EQ(Read("CURRENT"), "new");
  EXPECT_EQ(Read("CURRENT.tmp"), "no file");
  EXPECT_TRUE(env_.RemoveFile(Path("CURRENT")).ok());
  EXPECT_EQ(Read("CURRENT"), "on disk") << "only the copy in memory is removed";
  EXPECT_EQ(OnDisk("CURRENT"), "on disk");
}

TEST_F(ReadOnlyEnvTest, NeitherLocksNorLogsNorFoldersAreMade) {
  leveldb::FileLock* lock = nullptr;
  ASSERT_TRUE(env_.LockFile(Path("LOCK"), &lock).ok());
  leveldb::FileLock* second = nullptr;
  EXPECT_TRUE(env_.LockFile(Path("LOCK"), &second).ok()) << "another reader is allowed";
  EXPECT_TRUE(env_.UnlockFile(lock).ok());
  EXPECT_TRUE(env_.UnlockFile(second).ok());
  leveldb::Logger* logger = nullptr;
  ASSERT_TRUE(env_.NewLogger(Path("LOG"), &logger).ok());
  const std::unique_ptr<leveldb::Logger> own(logger);
  EXPECT_TRUE(env_.CreateDir(Path("new")).ok());
  EXPECT_TRUE(env_.RemoveDir(folder_).ok());
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_))
    names.push_back(entry.path().filename());
  EXPECT_THAT(names, UnorderedElementsAre("CURRENT"));
}

TEST_F(ReadOnlyEnvTest, WritesFailOnceItIsSealed) {
  ASSERT_TRUE(Write("000005.ldb", "a table").ok());
  env_.Seal();
  const leveldb::Status status = Write("000006.ldb", "another");
  EXPECT_TRUE(status.IsNotSupportedError());
  EXPECT_THAT(status.ToString(), testing::HasSubstr("000006.ldb"));
  leveldb::WritableFile* file = nullptr;
  EXPECT_TRUE(env_.NewAppendableFile(Path("000005.ldb"), &file).IsNotSupportedError());
  EXPECT_EQ(Read("000005.ldb"), "a table");
}

}  // namespace
}  // namespace hearth::caffe
