#include "hearth/caffe/data/database/lmdb_file.h"

#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "hearth/base/testing/error_testing.h"
#include "hearth/base/testing/test_folder_testing.h"

namespace hearth::caffe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr size_t kPage = 512;

// A file in memory that counts its reads and whose content may shrink.
class MemoryFile : public storage::InputFile {
 public:
  MemoryFile(const std::string* bytes, int* reads) : bytes_(bytes), reads_(reads) {}
  size_t ReadAt(uint64_t offset, void* data, size_t size) override {
    ++*reads_;
    return offset < bytes_->size() ? bytes_->copy(static_cast<char*>(data), size, offset) : 0;
  }
  uint64_t size() const override { return bytes_->size(); }

 private:
  const std::string* const bytes_;
  int* const reads_;
};

class LmdbFileTest : public testing::Test {
 protected:
  LmdbFileTest() {
    for (int page = 0; page < 200; ++page) bytes_ += std::string(kPage, static_cast<char>(page));
  }

  LmdbFile Remote() {
    return {"hdfs://nn/a/data.mdb", std::make_unique<MemoryFile>(&bytes_, &tree_reads_),
            std::make_unique<MemoryFile>(&bytes_, &value_reads_)};
  }
  static char FirstOf(const std::byte* page) { return static_cast<char>(*page); }

  std::string bytes_;
  int tree_reads_ = 0, value_reads_ = 0;
};

TEST_F(LmdbFileTest, FetchesAPageOnceWhileItIsUsed) {
  LmdbFile file = Remote();
  EXPECT_EQ(file.mapped(), nullptr);
  EXPECT_EQ(file.size(), bytes_.size());
  for (uint64_t page = 1; page < 200; ++page) {
    EXPECT_EQ(FirstOf(file.Page(0, kPage)), 0) << "the root is used for each record";
    EXPECT_EQ(FirstOf(file.Page(page, kPage)), static_cast<char>(page));
  }
  EXPECT_EQ(tree_reads_, 200);
  EXPECT_EQ(file.fetched(), bytes_.size());
  file.Page(1, kPage);
  EXPECT_EQ(tree_reads_, 201) << "it was not used for a long time";
}

TEST_F(LmdbFileTest, APageIsValidWhile32OthersAreRequested) {
  LmdbFile file = Remote();
  for (uint64_t page = 100; page < 190; ++page) file.Page(page, kPage);  // fills the cache
  const std::byte* const first = file.Page(7, kPage);
  for (uint64_t page = 40; page < 72; ++page) file.Page(page, kPage);
  EXPECT_EQ(std::memcmp(first, bytes_.data() + 7 * kPage, kPage), 0);
  EXPECT_EQ(file.Page(7, kPage), first);
}

// The meta page is first read with a small page size, before the file's page size is known.
TEST_F(LmdbFileTest, APageOfAnotherSizeIsFetchedAgain) {
  LmdbFile file = Remote();
  EXPECT_EQ(FirstOf(file.Page(1, kPage)), 1);
  EXPECT_EQ(FirstOf(file.Page(1, 2 * kPage)), 2);
  EXPECT_EQ(tree_reads_, 2);
}

TEST_F(LmdbFileTest, ReadsValuesByTheirOwnReader) {
  LmdbFile file = Remote();
  EXPECT_EQ(std::memcmp(file.Value(1000, 3000), bytes_.data() + 1000, 3000), 0);
  EXPECT_EQ(tree_reads_, 0);
  EXPECT_EQ(value_reads_, 1);
  EXPECT_EQ(file.fetched(), 3000U);
}

TEST_F(LmdbFileTest, AFileThatIsNowShorterIsNamed) {
  LmdbFile file = Remote();
  bytes_.resize(1000);
  for (const auto& read : {+[](LmdbFile* from) { from->Page(1, kPage); },
                           +[](LmdbFile* from) { from->Value(900, 200); }}) {
    const Error error = Thrown([&] { read(&file); });
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    EXPECT_THAT(error.message(), AllOf(HasSubstr("hdfs://nn/a/data.mdb"), HasSubstr("byte 1000"),
                                       HasSubstr("do not write to a database")));
  }
  EXPECT_EQ(FirstOf(file.Page(0, kPage)), 0);
}

// A colon does not make a path a URI.
TEST_F(LmdbFileTest, MapsLocalFiles) {
  const std::string path = TestFolder() + "lmdb_file_test:1";
  std::ofstream(path, std::ios::binary) << bytes_;
  {
    LmdbFile file(path);
    ASSERT_NE(file.mapped(), nullptr);
    EXPECT_EQ(file.size(), bytes_.size());
    EXPECT_EQ(file.Value(1000, 10), file.mapped() + 1000);
    EXPECT_EQ(file.fetched(), 0U);
  }
  std::filesystem::remove(path);
  const Error missing = Thrown([&] { LmdbFile file(path); });
  EXPECT_EQ(missing.code(), ErrorCode::kNotFound);
  EXPECT_THAT(missing.message(), HasSubstr(path));
}

}  // namespace
}  // namespace hearth::caffe
