#include "hearth/caffe/data/database/datum_rows.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "hearth/base/error.h"
#include "hearth/base/testing/test_folder_testing.h"
#include "hearth/caffe/data/database/database.h"
#include "hearth/caffe/data/database/testing/datum_testing.h"
#include "hearth/caffe/proto/wire_writer.h"

namespace hearth::caffe {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Offset of the record count in a meta page. It follows the page header, 24 bytes of the meta
// header and the 48-byte descriptor of the free pages.
constexpr std::streamoff kRecordsAt = 16 + 24 + 48 + 32;

class DatumRowsTest : public testing::Test {
 protected:
  DatumRowsTest() { fs::remove_all(path_); }
  ~DatumRowsTest() override { fs::remove_all(path_); }

  void Write(const std::vector<std::pair<std::string, std::string>>& records) const {
    auto writer = CreateDatabase(DataParameter::LMDB, path_);
    for (const auto& [key, value] : records) writer->Put(key, value);
    writer->Commit();
  }

  static std::string RecordOf(const std::string& data, int label) {
    Datum datum;
    datum.set_channels(1);
    datum.set_height(1);
    datum.set_width(static_cast<int32_t>(data.size()));
    datum.set_label(label);
    if (!data.empty()) datum.set_data(data);
    return WireBytes(datum);
  }

  std::vector<std::string> IdsOf(const LmdbParts& parts, uint64_t part) const {
    const uint64_t count = parts.first_keys.size();
    const uint64_t begin = PartBegin(parts.records, part, count);
    DatumRows rows(file_, parts.first_keys[part],
                   PartBegin(parts.records, part + 1, count) - begin);
    std::vector<std::string> ids;
    while (const auto batch = ViewOf(rows.Next())) {
      for (int64_t i = 0; i < batch->rows(); ++i) ids.push_back(batch->column("id").AsText(i));
    }
    return ids;
  }

  const std::string path_ = TestFolder() + "datum_rows_test";
  const std::string file_ = path_ + "/data.mdb";
};

TEST_F(DatumRowsTest, PartsHaveEachRecordOnceAndInOrder) {
  std::vector<std::pair<std::string, std::string>> records;
  std::vector<std::string> keys;
  for (int i = 0; i < 9001; ++i) {
    keys.push_back(fmt::format("{:08}", i));
    records.emplace_back(keys.back(), RecordOf("abc", i));
  }
  Write(records);
  for (const uint64_t count : {1, 2, 7, 9001, 9005}) {
    const LmdbParts parts = DivideLmdb(file_, count);
    EXPECT_EQ(parts.records, 9001U);
    std::vector<std::string> ids;
    for (uint64_t part = 0; part < count; ++part) {
      for (const std::string& id : IdsOf(parts, part)) ids.push_back(id);
    }
    EXPECT_EQ(ids, keys) << count;
  }
}

TEST_F(DatumRowsTest, CutsHaveEachRecordOnceAndSimilarSizes) {
  std::vector<std::pair<std::string, std::string>> records;
  std::vector<std::string> keys;
  for (int i = 0; i < 20'000; ++i) {
    keys.push_back(fmt::format("{:08}", i));
    records.emplace_back(keys.back(), RecordOf("abcdefgh", i));
  }
  Write(records);
  EXPECT_TRUE(CutLmdb(file_, 100'000).parts.empty());  // more parts than the file has pages
  for (const size_t wanted : {1UL, 3UL, 60UL}) {
    const LmdbCuts cuts = CutLmdb(file_, wanted);
    EXPECT_EQ(cuts.records, 20'000U);
    ASSERT_GE(cuts.parts.size(), wanted);
    ASSERT_LE(cuts.parts.size(), 2 * wanted);
    std::vector<std::string> ids;
    for (size_t part = 0; part < cuts.parts.size(); ++part) {
      DatumRange range{cuts.parts[part].first_key, std::nullopt, std::nullopt, true};
      if (part + 1 < cuts.parts.size()) range.end_key = cuts.parts[part + 1].first_key;
      DatumRows rows(file_, range);
      const size_t before = ids.size();
      while (const auto batch = ViewOf(rows.Next())) {
        for (int64_t i = 0; i < batch->rows(); ++i) ids.emplace_back(batch->column("id").AsText(i));
      }
      EXPECT_LE(ids.size() - before, 3 * keys.size() / cuts.parts.size());
    }
    EXPECT_EQ(ids, keys) << wanted;
  }
}

TEST_F(DatumRowsTest, ARecordThatIsNotADatumHasNullsAndKeysAreText) {
  Write({{"good", RecordOf("xyz", 7)},
         {"no data", RecordOf("", 3)},
         {"none", "no Datum"},
         {std::string("\xff\0", 2), RecordOf("x", 1)}});
  DatumRows rows(file_, "good", 4);
  const auto batch = ViewOf(rows.Next());
  ASSERT_EQ(batch->rows(), 4);
  const auto null_in = [&](const char* column) {
    std::vector<bool> nulls;
    for (int64_t i = 0; i < 4; ++i) nulls.push_back(batch->column(column).IsNull(i));
    return nulls;
  };
  EXPECT_EQ(batch->column("label").AsInt64(0), 7);
  EXPECT_EQ(batch->column("width").AsInt64(0), 3);
  EXPECT_EQ(batch->column("encoded").AsInt64(0), 0);
  EXPECT_EQ(batch->column("data").Bytes(0), "xyz");
  EXPECT_THAT(null_in("id"), ElementsAre(false, false, false, false));
  EXPECT_THAT(null_in("label"), ElementsAre(false, false, true, false));
  EXPECT_THAT(null_in("data"), ElementsAre(false, true, true, false));
  EXPECT_EQ(batch->column("id").AsText(3), "ff00");
  EXPECT_EQ(rows.Next(), nullptr);
}

TEST_F(DatumRowsTest, ABatchEndsBeforeItsLimitAndALargeRecordHasItsOwn) {
  const std::string large(5 << 20, 'l'), small(1 << 20, 's');
  Write({{"a", RecordOf(small, 1)},
         {"b", RecordOf(small, 2)},
         {"c", RecordOf(large, 3)},
         {"d", RecordOf(small, 4)}});
  std::vector<int64_t> rows;
  {
    DatumRows all(file_, "a", 4);
    while (const auto batch = all.Next()) rows.push_back(batch->rows());
  }
  EXPECT_THAT(rows, ElementsAre(2, 1, 1));
}

TEST_F(DatumRowsTest, ABatchOutlivesItsReader) {
  Write({{"a", RecordOf(std::string(9000, 'x'), 7)}});
  auto rows = std::make_unique<DatumRows>(file_, "a", 1);
  const auto batch = rows->Next();
  rows.reset();
  EXPECT_EQ(ViewOf(batch)->column("data").Bytes(0), std::string(9000, 'x'));
}

TEST_F(DatumRowsTest, MissingRecordsAreAnError) {
  Write({{"a", RecordOf("x", 1)}});
  DatumRows rows(file_, "a", 2);
  EXPECT_THROW(rows.Next(), Error);
  EXPECT_THROW(DivideLmdb(file_, 0), Error);
  EXPECT_EQ(DatumRows(file_, "", 0).Next(), nullptr);
}

// Without the check of the header's count, each part would begin at the first record again.
TEST_F(DatumRowsTest, AWrongCountDoesNotDuplicateRecords) {
  std::vector<std::pair<std::string, std::string>> records;
  for (int i = 0; i < 100; ++i) records.emplace_back(fmt::format("{:08}", i), RecordOf("a", i));
  Write(records);
  std::fstream file(file_, std::ios::binary | std::ios::in | std::ios::out);
  for (const std::streamoff meta : {0, 4096}) {
    file.seekp(meta + kRecordsAt);
    file.write("\xc8", 1);  // 200
  }
  file.close();
  EXPECT_THAT([&] { DivideLmdb(file_, 2); }, ThrowsMessage<Error>(HasSubstr("header says 200")));
}

TEST_F(DatumRowsTest, AMissingFirstRecordOfAPartIsAnError) {
  Write({{"a", RecordOf("x", 1)}, {"c", RecordOf("y", 2)}});
  EXPECT_THAT([&] { DatumRows(file_, "b", 1); },
              ThrowsMessage<Error>(HasSubstr("no longer has the record 'b'")));
  EXPECT_THROW(DatumRows(file_, "d", 1), Error);
  EXPECT_THROW(DatumRows(file_, "", 1), Error);
}

}  // namespace
}  // namespace hearth::caffe
