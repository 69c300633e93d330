#include "hearth/batch/spill_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>

#include "hearth/base/testing/error_testing.h"
#include "hearth/base/testing/test_folder_testing.h"
#include "hearth/batch/testing/batch_testing.h"

namespace hearth::batch {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> Filled(size_t bytes, int value) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(value));
}

TEST(SpillFile, ImagesStayWhereTheyWereMapped) {
  SpillFile file(::testing::TempDir(), 64 << 10);
  std::vector<std::span<const std::byte>> mapped;
  for (int i = 0; i < 40; ++i) mapped.push_back(file.Append(Filled(10'000 + i, i)));
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(mapped[i].size(), 10'000u + i);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(mapped[i].data()) % 64, 0u);
    EXPECT_EQ(mapped[i].front(), static_cast<std::byte>(i));
    EXPECT_EQ(mapped[i].back(), static_cast<std::byte>(i));
  }
}

TEST(SpillFile, DroppedPagesAreNotResidentAndReadTheSame) {
  constexpr int64_t kBytes = 16 << 20;
  SpillFile file(::testing::TempDir());
  const auto mapped = file.Append(Filled(kBytes, 7));
  const int64_t before = ResidentFileBytes();
  EXPECT_EQ(std::count(mapped.begin(), mapped.end(), std::byte{7}), kBytes);
  EXPECT_GT(ResidentFileBytes(), before + kBytes / 2);
  file.DropPages();
  EXPECT_LT(ResidentFileBytes(), before + kBytes / 4);
  EXPECT_EQ(std::count(mapped.begin(), mapped.end(), std::byte{7}), kBytes);
}

TEST(SpillFile, ImageLargerThanASegmentGetsItsOwnSegment) {
  SpillFile file(::testing::TempDir(), 64 << 10);
  file.Append(Filled(100, 1));
  const auto big = file.Append(Filled(1'000'000, 2));
  const auto small = file.Append(Filled(100, 3));
  EXPECT_EQ(big.back(), std::byte{2});
  EXPECT_EQ(small.back(), std::byte{3});
}

TEST(SpillFile, HasNoNameAndIsPrivate) {
  const auto folder = std::filesystem::path(TestFolder()) / "hearth-spill-test";
  std::filesystem::create_directory(folder);
  SpillFile file(folder);
  file.Append(Filled(100, 1));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove(folder);
}

TEST(SpillFile, MissingDirectoryIsNamed) {
  const Error error = Thrown([] { SpillFile file("/nowhere/at/all"); });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_THAT(error.message(), HasSubstr("cannot create a spill file in '/nowhere/at/all'"));
}

// Descriptor of this process's unnamed file in `folder`.
int UnnamedFileIn(const std::filesystem::path& folder) {
  for (int fd = 0; fd < 1024; ++fd) {
    std::error_code none;
    const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), none);
    if (path.string().starts_with(folder.string())) return fd;
  }
  return -1;
}

TEST(SpillFile, PreallocatesBlocksButNotAWholeSegment) {
  const auto folder = std::filesystem::path(TestFolder()) / "hearth-spill-blocks";
  std::filesystem::create_directory(folder);
  SpillFile file(folder);
  file.Append(Filled(100, 1));
  struct stat status = {};
  const int fd = UnnamedFileIn(folder);
  std::filesystem::remove(folder);
  ASSERT_EQ(::fstat(fd, &status), 0);
  if (::fallocate(fd, 0, 0, 1) != 0) GTEST_SKIP() << "the file system cannot preallocate";
  EXPECT_GE(status.st_blocks * 512, 4 << 20);
  EXPECT_LE(status.st_blocks * 512, 12 << 20);
}

// The limit on file sizes simulates a full disk.
class FullDisk : public ::testing::Test {
 protected:
  FullDisk() {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    old_handler_ = ::signal(SIGXFSZ, SIG_IGN);
  }
  void FillDisk() {
    const rlimit limit = {256 << 10, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() override {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit before_;
  sighandler_t old_handler_;
};

TEST_F(FullDisk, IsDetectedInTheMiddleOfASegment) {
  SpillFile file(::testing::TempDir(), 1 << 20);
  file.Append(Filled(100, 1));
  FillDisk();
  EXPECT_EQ(CodeOf([&] {
              for (int i = 0; i < 10; ++i) file.Append(Filled(50'000, 2));
            }),
            ErrorCode::kResourceExhausted);
}

TEST_F(FullDisk, IsReportedWithAdviceAndKeepsTheRows) {
  FillDisk();
  SpillFile file(::testing::TempDir(), 64 << 10);
  const auto first = file.Append(Filled(50'000, 1));
  const Error error = Thrown([&] {
    for (int i = 0; i < 10; ++i) file.Append(Filled(50'000, 2));
  });
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(error.message(), HasSubstr("spill_dir"));
  EXPECT_EQ(first.back(), std::byte{1});
}

// Additional folders of an executor; the destructor deletes them.
class ExecutorFolders {
 public:
  explicit ExecutorFolders(int count) {
    std::string all;
    for (int i = 0; i < count; ++i) {
      folders_.push_back(TestFolder() + "hearth-spill-disk" + std::to_string(i));
      std::filesystem::create_directory(folders_.back());
      all += (i == 0 ? "" : ":") + folders_.back();
    }
    ::setenv("SPARK_EXECUTOR_DIRS", ("/nowhere/at/all:" + all).c_str(), 1);
  }
  ~ExecutorFolders() {
    ::unsetenv("SPARK_EXECUTOR_DIRS");
    for (const std::string& folder : folders_) std::filesystem::remove(folder);
  }
  const std::string& operator[](int i) const { return folders_[static_cast<size_t>(i)]; }

 private:
  std::vector<std::string> folders_;
};

TEST_F(FullDisk, ContinuesInTheNextFolderWithoutLoss) {
  const ExecutorFolders folders(2);
  FillDisk();
  SpillFile file(folders[0], 64 << 10);
  std::vector<std::span<const std::byte>> mapped;
  // Four images fit into a file, so the first four are in the first folder and the others in the
  // second.
  for (int i = 0; i < 8; ++i) mapped.push_back(file.Append(Filled(50'000, i)));
  EXPECT_NE(UnnamedFileIn(folders[1]), -1);
  EXPECT_GE(file.bytes(), 400'000u);
  const Error error = Thrown([&] { file.Append(Filled(50'000, 2)); });
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(error.message(),
              HasSubstr(folders[0] + "', '/nowhere/at/all', '" + folders[1] + "'"));
  file.DropPages();
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(mapped[i].front(), static_cast<std::byte>(i));
    EXPECT_EQ(mapped[i].back(), static_cast<std::byte>(i));
  }
}

}  // namespace
}  // namespace hearth::batch
