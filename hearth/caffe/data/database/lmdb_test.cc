#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "hearth/base/testing/error_testing.h"
#include "hearth/base/testing/test_folder_testing.h"
#include "hearth/caffe/data/database/backends.h"

namespace hearth::caffe {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class LmdbTest : public testing::Test {
 protected:
  LmdbTest() { fs::remove_all(path_); }
  ~LmdbTest() override { fs::remove_all(path_); }

  // Counts the records. Each value must consist of `size` copies of its key's last byte.
  static int CountRecords(const std::string& path, size_t size) {
    int count = 0;
    for (const auto cursor = OpenLmdb(path); cursor->valid(); cursor->Next(), ++count) {
      EXPECT_EQ(cursor->value(), std::string(size, cursor->key().back()));
    }
    return count;
  }

  const std::string path_ = TestFolder() + "lmdb_test";
};

// The LMDB library's memory map has 10 MiB at first, and each of these commits needs more.
TEST_F(LmdbTest, ACommitMayBeLargerThanTheMap) {
  constexpr size_t kBytes = 1 << 20;
  const auto writer = CreateLmdb(path_);
  for (int i = 0; i < 60; ++i) {
    const std::string key = std::to_string(100 + i);
    writer->Put(key, std::string(kBytes, key.back()));
    if (i == 29) writer->Commit();
  }
  writer->Commit();
  EXPECT_EQ(CountRecords(path_, kBytes), 60);
}

TEST_F(LmdbTest, IsOpenedByItsFolderOrItsFile) {
  const auto writer = CreateLmdb(path_);
  writer->Put("a", "aaa");
  writer->Commit();
  EXPECT_EQ(CountRecords(path_, 3), 1);
  EXPECT_EQ(CountRecords(path_ + "/data.mdb", 3), 1);
  fs::rename(path_ + "/data.mdb", path_ + "/train.mdb");
  EXPECT_EQ(CountRecords(path_ + "/train.mdb", 3), 1);
  EXPECT_THAT(Thrown([&] { OpenLmdb(path_); }).message(), HasSubstr(path_ + "/data.mdb"));
}

TEST_F(LmdbTest, RequiresAFreePathInAnExistingFolder) {
  const Error missing = Thrown([&] { CreateLmdb(path_ + "/a"); });
  EXPECT_EQ(missing.code(), ErrorCode::kNotFound);
  EXPECT_THAT(missing.message(), HasSubstr("cannot create " + path_ + "/a"));
  fs::create_directory(path_);
  EXPECT_THAT(Thrown([&] { CreateLmdb(path_); }).message(), HasSubstr("cannot create " + path_));
  EXPECT_TRUE(fs::is_empty(path_));
}

// A failed commit writes none of its records and leaves the database usable.
TEST_F(LmdbTest, AnInvalidKeyFailsItsWholeCommit) {
  for (const std::string& key : {std::string(), std::string(600, 'k')}) {
    fs::remove_all(path_);
    {
      const auto writer = CreateLmdb(path_);
      writer->Put("a", "a");
      writer->Commit();
      writer->Put("b", "b");
      writer->Put(key, "value");
      const Error error = Thrown([&] { writer->Commit(); });
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
      EXPECT_THAT(error.message(),
                  HasSubstr("cannot write the LMDB " + path_ + ": MDB_BAD_VALSIZE"));
    }
    EXPECT_EQ(CountRecords(path_, 1), 1);
  }
}

}  // namespace
}  // namespace hearth::caffe
