// Tests of both database backends.
#include "hearth/caffe/data/database/database.h"
#include "hearth/base/testing/test_folder_testing.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <map>

#include "hearth/base/error.h"

namespace hearth::caffe {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;
using Records = std::map<std::string, std::string>;
using FileTimes = std::map<std::string, fs::file_time_type>;

Records ReadAll(DatabaseCursor& cursor) {
  Records records;
  for (; cursor.valid(); cursor.Next()) {
    const std::string key(cursor.key());
    EXPECT_TRUE(records.empty() || records.rbegin()->first < key) << "keys must be in order";
    records[key] = std::string(cursor.value());
  }
  return records;
}

FileTimes FilesOf(const std::string& folder) {
  FileTimes files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    files[entry.path().filename()] = entry.last_write_time();
  }
  return files;
}

class Database : public testing::TestWithParam<DataParameter::DB> {
 protected:
  Database() { fs::remove_all(path_); }
  ~Database() override { fs::remove_all(path_); }

  // Writes the records in the order of `keys`.
  void Write(const std::vector<std::string>& keys) {
    auto writer = CreateDatabase(GetParam(), path_);
    for (const std::string& key : keys) writer->Put(key, "value of " + key);
    writer->Commit();
  }
  auto Open() const { return OpenDatabase(GetParam(), path_); }

  const std::string path_ = TestFolder() + "database_test";
};

TEST_P(Database, ReadsRecordsInKeyOrder) {
  Write({"b", "c", "a"});
  EXPECT_EQ(ReadAll(*Open()),
            (Records{{"a", "value of a"}, {"b", "value of b"}, {"c", "value of c"}}));
}

TEST_P(Database, CanBeReadAgainFromTheFirstRecord) {
  Write({"a", "b"});
  const auto cursor = Open();
  ReadAll(*cursor);
  EXPECT_FALSE(cursor->valid());
  cursor->SeekToFirst();
  EXPECT_EQ(cursor->key(), "a");
}

TEST_P(Database, KeepsLargeAndBinaryValues) {
  std::string large(3 << 20, 'x');
  large[5] = '\0';
  Records expected;
  {
    auto writer = CreateDatabase(GetParam(), path_);
    for (int i = 10; i < 50; ++i) {
      large[0] = static_cast<char>(i);
      expected[std::to_string(i)] = large;
      writer->Put(std::to_string(i), large);
      if (i % 7 == 0) writer->Commit();
    }
    writer->Commit();
  }
  EXPECT_TRUE(ReadAll(*Open()) == expected);
}

TEST_P(Database, ContainsOnlyCommittedRecords) {
  {
    auto writer = CreateDatabase(GetParam(), path_);
    writer->Put("a", "1");
    writer->Commit();
    writer->Put("b", "2");
  }
  EXPECT_EQ(ReadAll(*Open()), (Records{{"a", "1"}}));
}

TEST_P(Database, CanBeEmpty) {
  Write({});
  EXPECT_FALSE(Open()->valid());
}

TEST_P(Database, IsReadByTwoCursorsAtOnceWithoutChangingItsFiles) {
  Write({"a", "b"});
  const FileTimes before = FilesOf(path_);
  {
    const auto one = Open(), other = Open();
    one->Next();
    EXPECT_EQ(one->key(), "b");
    EXPECT_EQ(other->key(), "a");
  }
  EXPECT_EQ(FilesOf(path_), before);
}

TEST_P(Database, IsNotOverwritten) {
  Write({"a"});
  EXPECT_THAT([this] { Write({"b"}); }, ThrowsMessage<Error>(HasSubstr("already exists")));
}

TEST_P(Database, NamesAMissingDatabase) {
  EXPECT_THAT([this] { Open(); }, ThrowsMessage<Error>("there is no database " + path_));
  fs::create_directory(path_);
  EXPECT_THAT([this] { Open(); }, ThrowsMessage<Error>(HasSubstr("is not a database")));
}

TEST_P(Database, RejectsADatabaseOfTheOtherFormat) {
  const bool is_lmdb = GetParam() == DataParameter::LMDB;
  Write({"a"});
  EXPECT_THAT(
      [&] { OpenDatabase(is_lmdb ? DataParameter::LEVELDB : DataParameter::LMDB, path_); },
      ThrowsMessage<Error>(HasSubstr(is_lmdb ? "set backend: LMDB" : "set backend: LEVELDB")));
}

TEST_P(Database, RejectsADamagedDatabase) {
  Write({"a"});
  for (const auto& entry : fs::directory_iterator(path_)) {
    if (entry.path().filename() != "LOCK") fs::resize_file(entry.path(), 5);
  }
  EXPECT_THAT([this] { Open(); },
              ThrowsMessage<Error>(
                  testing::AnyOf(HasSubstr("cannot open the L"), HasSubstr("is not an LMDB"))));
}

INSTANTIATE_TEST_SUITE_P(Both, Database,
                         testing::Values(DataParameter::LMDB, DataParameter::LEVELDB),
                         [](const auto& info) {
                           return info.param == DataParameter::LMDB ? "Lmdb" : "LevelDb";
                         });

TEST(BackendNamed, AcceptsTwoNames) {
  EXPECT_EQ(BackendNamed("lmdb"), DataParameter::LMDB);
  EXPECT_EQ(BackendNamed("leveldb"), DataParameter::LEVELDB);
  EXPECT_THAT([] { BackendNamed("rocksdb"); }, ThrowsMessage<Error>(HasSubstr("'rocksdb'")));
}

}  // namespace
}  // namespace hearth::caffe
