#include "hearth/formats/mapped_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <thread>

#include "hearth/base/testing/error_testing.h"
#include "hearth/base/testing/test_folder_testing.h"
#include "hearth/formats/testing/mapped_file_testing.h"

namespace hearth::formats {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(MappedFile, IsFoundByAddressWhileMapped) {
  ValuesInFile file({100, 5000});
  const std::string_view value = file.values()[1];
  EXPECT_EQ(MappedFile::Around(value), file.mapped());
  EXPECT_EQ(file.mapped()->OffsetOf(value), 104u);
  EXPECT_EQ(MappedFile::Around({value.data(), value.size() + 1}), nullptr);
  EXPECT_EQ(MappedFile::Around("elsewhere"), nullptr);
  EXPECT_EQ(MappedFile::Around(value.substr(value.size())), file.mapped());
  file.Forget();
  EXPECT_EQ(MappedFile::Around(value), nullptr);
}

TEST(MappedFile, IsMappedOnceForAllReaders) {
  ValuesInFile file({100});
  const FileIdentity identity = file.mapped()->identity();
  EXPECT_EQ(MappedFile::Find(file.path(), identity), file.mapped());
  file.Forget();
  const auto first = MappedFile::Find(file.path(), identity);
  EXPECT_EQ(MappedFile::Find(file.path(), identity), first);
  EXPECT_EQ(first->size(), 104u);
}

TEST(MappedFile, ChangedFileIsRejectedWithTheDifference) {
  ValuesInFile file({100});
  const FileIdentity identity = file.mapped()->identity();
  file.Forget();
  const auto refused = [&](FileIdentity wanted) {
    const Error error = Thrown([&] { MappedFile::Find(file.path(), wanted); });
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    EXPECT_THAT(error.message(), HasSubstr(file.path()));
    EXPECT_THAT(error.message(), HasSubstr("restore the file, or start the run again"));
    return error.message();
  };
  EXPECT_THAT(refused({100, identity.modified_ns, identity.inode}),
              HasSubstr("has 104 bytes instead of 100 on host"));
  EXPECT_THAT(refused({104, identity.modified_ns, identity.inode + 1}),
              HasSubstr("was replaced by another file"));
  EXPECT_THAT(refused({104, identity.modified_ns - 1, identity.inode}),
              HasSubstr("was modified meanwhile"));
}

TEST(MappedFile, MissingFileIsNamed) {
  std::string path;
  FileIdentity identity;
  {
    ValuesInFile file({100});
    path = file.path();
    identity = file.mapped()->identity();
  }
  for (const Error& error : {Thrown([&] { MappedFile::Find(path, identity); }),
                             Thrown([&] { MappedFile::Open(path); })}) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_THAT(error.message(), HasSubstr(path));
  }
}

TEST(MappedFile, OnlyRegularFilesAreOpened) {
  const std::string path = TestFolder() + "pipe_in_place";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const Error found = Thrown([&] { MappedFile::Find(path, {104, 0, 1}); });
  const Error opened = Thrown([&] { MappedFile::Open(path); });
  std::filesystem::remove(path);
  EXPECT_THAT(found.message(), EndsWith("pipe_in_place is not a regular file"));
  EXPECT_THAT(opened.message(), EndsWith("pipe_in_place is not a regular file"));
}

TEST(MappedFile, EmptyFileIsRejected) {
  const ValuesInFile file({});
  std::filesystem::resize_file(file.path(), 0);
  const Error error = Thrown([&] { MappedFile::Open(file.path()); });
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  EXPECT_EQ(error.message(), file.path() + " is empty");
}

TEST(MappedFile, ModifiedOrTruncatedFileIsAnError) {
  ValuesInFile file({100});
  file.mapped()->CheckUnchanged();
  file.Change();
  EXPECT_THAT(Thrown([&] { file.mapped()->CheckUnchanged(); }).message(),
              HasSubstr("was modified meanwhile"));
  std::filesystem::resize_file(file.path(), 50);
  EXPECT_THAT(Thrown([&] { file.mapped()->CheckUnchanged(); }).message(),
              HasSubstr("has 50 bytes instead of 104"));
}

TEST(MappedFile, ReplacedFileKeepsItsContent) {
  const ValuesInFile file({100});
  const ValuesInFile other({50});
  std::filesystem::rename(other.path(), file.path());
  file.mapped()->CheckUnchanged();
  EXPECT_EQ(file.values()[0], std::string(100, 'a'));
  std::filesystem::remove(file.path());
  file.mapped()->CheckUnchanged();
}

TEST(MappedFile, ManyThreadsMayFindAndReleaseIt) {
  ValuesInFile file({100});
  const FileIdentity identity = file.mapped()->identity();
  const std::string_view value = file.values()[0];
  file.Forget();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        const auto found = MappedFile::Find(file.path(), identity);
        EXPECT_EQ(found->size(), 104u);
        MappedFile::Around(value);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace hearth::formats
