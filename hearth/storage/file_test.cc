#include "hearth/storage/file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>

#include "hearth/base/error.h"

namespace hearth::storage {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  FileTest() {
    std::string name = (fs::temp_directory_path() / "hearth_file_XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~FileTest() override { fs::remove_all(folder_); }

  size_t FilesInFolder() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  fs::path folder_;
};

TEST_F(FileTest, ReadsWrittenData) {
  const std::string path = "file:" + (folder_ / "a").string();
  const std::string bytes(100'000, 'x');
  AtomicFile file(path);
  file.Append("begin");
  file.Append(bytes);
  EXPECT_EQ(FilesInFolder(), 0u) << "a process that is killed here would leave it";
  file.Commit();
  EXPECT_EQ(ReadFile(path), "begin" + bytes);
  EXPECT_EQ(FilesInFolder(), 1u);
}

TEST_F(FileTest, KeepsTheOldFileWithoutCommit) {
  const std::string path = (folder_ / "a").string();
  AtomicFile first(path);
  first.Append("old");
  first.Commit();
  {
    AtomicFile second(path);
    second.Append("new");
    EXPECT_EQ(ReadFile(path), "old");
  }
  EXPECT_EQ(ReadFile(path), "old");
  EXPECT_EQ(FilesInFolder(), 1u);
}

TEST_F(FileTest, CreatesFilesWithTheDefaultMode) {
  const std::string path = (folder_ / "a").string();
  const mode_t mask = umask(022);
  AtomicFile file(path);
  file.Commit();
  umask(mask);
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0644u);
}

TEST_F(FileTest, ErrorsNameTheFile) {
  const std::string path = (folder_ / "missing" / "a").string();
  EXPECT_THAT([&] { ReadFile(path); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("cannot open " + path)));
  EXPECT_THAT([&] { AtomicFile file(path); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("cannot create " + path)));
}

TEST_F(FileTest, RejectsReadingAFolder) { EXPECT_THROW(ReadFile(folder_.string()), Error); }

}  // namespace
}  // namespace hearth::storage
