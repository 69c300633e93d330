#include "hearth/caffe/data/database/lmdb_pages.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <random>

#include "hearth/base/error.h"
#include "hearth/base/testing/test_folder_testing.h"
#include "hearth/caffe/data/database/database.h"
#include "hearth/storage/file_system.h"

namespace hearth::caffe {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class LmdbPagesTest : public testing::Test {
 protected:
  LmdbPagesTest() { fs::remove_all(path_); }
  ~LmdbPagesTest() override { fs::remove_all(path_); }

  // Writes enough records for a tree of three levels, with values both in the leaves and on
  // separate pages.
  void Write(int records) {
    auto writer = CreateDatabase(DataParameter::LMDB, path_);
    std::mt19937 random(1);
    for (int i = 0; i < records; ++i) {
      const std::string key = fmt::format("{:08}-{}", random() % 100'000'000, i);
      records_[key] = std::string(i % 97 == 0 ? 9000 : random() % 60, static_cast<char>(i));
      writer->Put(key, records_[key]);
    }
    writer->Commit();
  }

  std::map<std::string, std::string> ReadAll() {
    LmdbPages pages(file_);
    return AllOf(&pages);
  }
  static std::map<std::string, std::string> AllOf(LmdbPages* pages) {
    std::map<std::string, std::string> all;
    for (; pages->valid(); pages->Next()) all.emplace(pages->key(), pages->value());
    return all;
  }
  // Fetches the file by pages, like a remote one.
  std::unique_ptr<LmdbFile> ByPages() {
    const auto open = [this] { return storage::For(file_).Open(file_); };
    return std::make_unique<LmdbFile>(file_, open(), open());
  }

  std::string Bytes() {
    std::ifstream stream(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }
  void Overwrite(const std::string& bytes) { std::ofstream(file_, std::ios::binary) << bytes; }

  const std::string path_ = TestFolder() + "lmdb_pages_test";
  const std::string file_ = path_ + "/data.mdb";
  std::map<std::string, std::string> records_;
};

TEST_F(LmdbPagesTest, ReadsFilesOfTheLibrary) {
  for (const int records : {0, 1, 20, 20'000}) {
    fs::remove_all(path_);
    records_.clear();
    Write(records);
    EXPECT_EQ(ReadAll(), records_) << records;
  }
}

TEST_F(LmdbPagesTest, ReadsTheSameByPagesWithoutMappingTheFile) {
  for (const int records : {0, 1, 20'000}) {
    fs::remove_all(path_);
    records_.clear();
    Write(records);
    LmdbPages pages(ByPages());
    EXPECT_EQ(AllOf(&pages), records_) << records;
    EXPECT_LE(pages.fetched(), 2 * fs::file_size(file_));
    for (const auto& [key, value] : records_) {
      pages.Seek(key);
      ASSERT_EQ(pages.value(), value);
    }
  }
}

TEST_F(LmdbPagesTest, ReadsALargeValueOnceWithoutItsFirstPage) {
  auto writer = CreateDatabase(DataParameter::LMDB, path_);
  for (int i = 0; i < 500; ++i) writer->Put(fmt::format("{:03}", i), std::string(9000, 'v'));
  writer->Commit();
  LmdbPages pages(ByPages());
  EXPECT_EQ(AllOf(&pages).size(), 500U);
  EXPECT_LE(pages.fetched(), fs::file_size(file_));
}

TEST_F(LmdbPagesTest, SubtreesCoverTheWholeTreeOnEachLevel) {
  Write(20'000);
  for (const size_t wanted : {1UL, 2UL, 100UL, 1'000'000UL}) {
    LmdbPages pages(ByPages());
    const std::vector<LmdbSubtree> trees = pages.Subtrees(wanted);
    EXPECT_FALSE(pages.valid());
    EXPECT_GE(trees.size(), std::min<size_t>(wanted, 300));
    EXPECT_EQ(trees.front().first_key, "");
    std::map<std::string, std::string> all;
    for (size_t i = 0; i < trees.size(); ++i) {
      const size_t before = all.size();
      for (pages.Seek(trees[i].first_key);
           pages.valid() && (i + 1 == trees.size() || pages.key() < trees[i + 1].first_key);
           pages.Next()) {
        EXPECT_TRUE(all.emplace(pages.key(), pages.value()).second);
      }
      EXPECT_GT(all.size(), before) << "subtree " << i << " of " << trees.size();
    }
    EXPECT_EQ(all, records_) << wanted;
  }
  EXPECT_LT(LmdbPages(ByPages()).fetched(), 40'000U);
}

TEST_F(LmdbPagesTest, SkipsAndSeeksToTheSameRecordsAsTheLibrary) {
  Write(20'000);
  std::vector<std::string> keys;
  for (const auto& [key, value] : records_) keys.push_back(key);
  LmdbPages pages(file_);
  for (const size_t position : {0UL, 1UL, 97UL, 9999UL, 19'998UL, 19'999UL}) {
    pages.SeekToFirst();
    pages.Skip(position);
    ASSERT_EQ(pages.key(), keys[position]);
    pages.Seek(keys[position]);
    ASSERT_EQ(pages.key(), keys[position]);
    EXPECT_EQ(pages.value(), records_[keys[position]]);
    // A seek between two keys finds the second one.
    pages.Seek(keys[position] + '\1');
    ASSERT_EQ(pages.valid(), position + 1 < keys.size());
    if (pages.valid()) {
      EXPECT_EQ(pages.key(), keys[position + 1]);
    }
  }
  pages.Seek("");
  EXPECT_EQ(pages.key(), keys.front());
  pages.Skip(20'000);
  EXPECT_FALSE(pages.valid());
  pages.Skip(1);
  EXPECT_FALSE(pages.valid());
}

TEST_F(LmdbPagesTest, DamageIsAnErrorNamingTheFile) {
  Write(2000);
  const std::string sound = Bytes();
  std::mt19937 random(2);
  int refused = 0, refused_by_pages = 0;
  for (int round = 0; round < 300; ++round) {
    std::string damaged = sound;
    if (round % 3 == 0) damaged.resize(random() % damaged.size());
    for (int i = 0; i < 50 && !damaged.empty(); ++i) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    Overwrite(damaged);
    try {
      ReadAll();
    } catch (const Error& error) {
      ++refused;
      EXPECT_THAT(error.message(), HasSubstr(file_));
    }
    try {
      LmdbPages pages(ByPages());
      pages.Subtrees(1000);
      pages.SeekToFirst();
      AllOf(&pages);
    } catch (const Error& error) {
      ++refused_by_pages;
      EXPECT_THAT(error.message(), HasSubstr(file_));
    }
  }
  EXPECT_GT(refused, 150);
  EXPECT_GE(refused_by_pages, refused);
}

// A damaged tree whose leaves have no records and whose branches reference them repeatedly would
// otherwise be traversed for a practically unlimited time.
TEST_F(LmdbPagesTest, ALeafWithoutRecordsIsAnError) {
  Write(20);
  std::string bytes = Bytes();
  constexpr size_t kPage = 4096, kFlagsAt = 10, kLowerAt = 12;
  for (size_t page = 2 * kPage; page < bytes.size(); page += kPage) {
    if (bytes[page + kFlagsAt] != 2) continue;
    bytes[page + kLowerAt] = 17;
    bytes[page + kLowerAt + 1] = 0;
  }
  Overwrite(bytes);
  EXPECT_THAT([&] { ReadAll(); }, testing::ThrowsMessage<Error>(HasSubstr("a page has no nodes")));
}

}  // namespace
}  // namespace hearth::caffe
