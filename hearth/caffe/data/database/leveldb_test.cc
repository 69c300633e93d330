#include "hearth/caffe/data/database/leveldb_rows.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/testing/test_folder_testing.h"
#include "hearth/caffe/data/database/testing/datum_testing.h"
#include "hearth/caffe/proto/wire_writer.h"

namespace hearth::caffe {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

class LevelDbRowsTest : public testing::Test {
 protected:
  LevelDbRowsTest() { fs::remove_all(path_); }
  ~LevelDbRowsTest() override { fs::remove_all(path_); }

  // Writes images of 1000 bytes and returns their keys.
  std::vector<std::string> Write(int records) const {
    Datum datum;
    std::string data(1000, '\0');
    auto writer = CreateDatabase(DataParameter::LEVELDB, path_);
    std::vector<std::string> keys;
    for (int i = 0; i < records; ++i) {
      for (size_t j = 0; j < data.size(); ++j) data[j] = static_cast<char>(31UL * i + j * j);
      datum.set_data(data);
      datum.set_label(i);
      keys.push_back(fmt::format("{:08}_n{:04}/{}.jpg", i, i % 1000, i));
      writer->Put(keys.back(), WireBytes(datum));
    }
    writer->Commit();
    return keys;
  }

  std::vector<std::string> IdsOf(const DatumRange& range) const {
    const auto rows = ReadLevelDb(path_, range);
    std::vector<std::string> ids;
    while (const auto batch = ViewOf(rows->Next())) {
      for (int64_t i = 0; i < batch->rows(); ++i) ids.push_back(batch->column("id").AsText(i));
    }
    return ids;
  }

  const std::string path_ = TestFolder() + "leveldb_rows_test";
};

TEST_F(LevelDbRowsTest, RangesHaveEachRecordOnceAndInOrder) {
  for (const auto& [records, parts] : {std::pair{4001, 1}, {4001, 2}, {4001, 7}, {50, 80}}) {
    fs::remove_all(path_);
    const std::vector<std::string> keys = Write(records);
    for (const uint64_t small : {kSmallLevelDb, uint64_t{0}}) {
      SCOPED_TRACE(fmt::format("{} parts of a database, small is {}", parts, small));
      const std::vector<DatumRange> ranges = DivideLevelDb(path_, parts, small);
      ASSERT_EQ(ranges.size(), static_cast<size_t>(parts));
      std::vector<std::string> ids;
      size_t largest = 0;
      for (const DatumRange& range : ranges) {
        const std::vector<std::string> part = IdsOf(range);
        ids.insert(ids.end(), part.begin(), part.end());
        largest = std::max(largest, part.size());
      }
      EXPECT_EQ(ids, keys);
      // A large database is divided by size in bytes, so a range may be a few blocks of 64 KiB too
      // large.
      EXPECT_LE(largest, keys.size() / ranges.size() + (small > 0 ? 1 : 200));
    }
  }
}

TEST_F(LevelDbRowsTest, AnEmptyDatabaseHasEmptyRanges) {
  Write(0);
  for (const uint64_t small : {kSmallLevelDb, uint64_t{0}}) {
    const std::vector<DatumRange> ranges = DivideLevelDb(path_, 3, small);
    ASSERT_EQ(ranges.size(), 3u);
    for (const DatumRange& range : ranges) EXPECT_TRUE(IdsOf(range).empty());
  }
  EXPECT_THROW(DivideLevelDb(path_, 0), Error);
}

// By default LevelDB skips damaged parts of its log.
TEST_F(LevelDbRowsTest, ADamagedLogIsAnErrorRatherThanMissingRecords) {
  Write(200);
  for (const auto& entry : fs::directory_iterator(path_)) {
    if (entry.path().extension() != ".log") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(fs::file_size(entry.path()) / 2));
    file.put('\x7f');
  }
  EXPECT_THAT([&] { DivideLevelDb(path_, 2); },
              ThrowsMessage<Error>(HasSubstr("cannot open the LevelDB")));
}

// A killed writer leaves a truncated log.
TEST_F(LevelDbRowsTest, ATruncatedLogEndsWithTheLastCompleteCommit) {
  const std::vector<std::string> keys = Write(200);
  for (const auto& entry : fs::directory_iterator(path_)) {
    if (entry.path().extension() != ".log") continue;
    std::ofstream(entry.path(), std::ios::binary | std::ios::app) << std::string(5, '\x01');
  }
  EXPECT_EQ(IdsOf(DivideLevelDb(path_, 1).front()), keys);
}

TEST_F(LevelDbRowsTest, ZeroPartsAreRejected) {
  Write(3);
  EXPECT_THAT([&] { DivideLevelDb(path_, 0); },
              ThrowsMessage<Error>(HasSubstr("cannot be read in 0 parts")));
}

TEST_F(LevelDbRowsTest, AMissingRangeIsAnError) {
  Write(3);
  DatumRange range;
  range.first_key = "gone";
  EXPECT_THAT([&] { ReadLevelDb(path_, range); },
              ThrowsMessage<Error>(HasSubstr("no longer has the record 'gone'")));
  range = DivideLevelDb(path_, 1).front();
  range.count = 4;
  EXPECT_THAT([&] { IdsOf(range); }, ThrowsMessage<Error>(HasSubstr("ends 1 records too early")));
  EXPECT_THAT([&] { DivideLevelDb(path_ + "/gone", 1); },
              ThrowsMessage<Error>(HasSubstr("cannot open the LevelDB")));
}

}  // namespace
}  // namespace hearth::caffe
