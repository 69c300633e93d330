#include "hearth/formats/sequence_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hearth/base/error.h"

namespace hearth::formats {
namespace {

using ::testing::HasSubstr;

constexpr size_t kAll = size_t{1} << 40;
const std::string kMark = std::string("\xff\xff\xff\xff") + "0123456789abcdef";

std::string Number(uint32_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<char>(value >> shift));
  return bytes;
}

std::string SequenceHeader() {
  const std::string type = "\x22org.apache.hadoop.io.BytesWritable";
  return "SEQ\x06" + type + type + std::string(6, '\0') + kMark.substr(4);
}

std::string SequenceRecord(const std::string& key, const std::string& value) {
  const auto key_size = static_cast<uint32_t>(key.size());
  const auto size = static_cast<uint32_t>(value.size());
  return Number(key_size + size + 8) + Number(key_size + 4) + Number(key_size) + key +
         Number(size) + value;
}

enum class By { kMapping, kWindows };

class SequenceReaderTest : public ::testing::TestWithParam<By> {
 protected:
  SequenceReaderTest() {
    close(mkstemp(path_.data()));
    bytes_ = SequenceHeader() + SequenceRecord("a", "first") + SequenceRecord("", "") + kMark +
             SequenceRecord("b", std::string(100, 'x')) + kMark + kMark +
             SequenceRecord("c", "last");
  }
  ~SequenceReaderTest() override { std::filesystem::remove(path_); }

  SequenceReader Opened() {
    auto windows = std::make_unique<WindowedBytes>(
        path_, bytes_.size(),
        [this](uint64_t at, size_t count) { return bytes_.substr(at, count); });
    SequenceReader reader(std::move(windows), path_, [](const std::string&) { return nullptr; });
    if (GetParam() == By::kMapping) {
      std::ofstream(path_) << bytes_;
      reader.Map(MappedFile::Open(path_));
    }
    return reader;
  }

  static std::string Keys(SequenceReader& reader, uint64_t begin, uint64_t end) {
    reader.Begin(begin, end);
    std::string keys;
    while (const auto record = reader.Next()) {
      keys += record->key.empty() ? "-" : std::string(record->key);
    }
    EXPECT_EQ(reader.Count(begin, end), keys.size());
    return keys;
  }

  std::string Damage(const std::string& bytes) {
    bytes_ = bytes;
    try {
      SequenceReader reader = Opened();
      Keys(reader, 0, kAll);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.message();
    }
    return "none";
  }

  std::string path_ = ::testing::TempDir() + "sequence-XXXXXX";
  std::string bytes_;
};

INSTANTIATE_TEST_SUITE_P(All, SequenceReaderTest, ::testing::Values(By::kMapping, By::kWindows));

TEST_P(SequenceReaderTest, EachRecordIsInExactlyOneRange) {
  SequenceReader reader = Opened();
  EXPECT_EQ(Keys(reader, 0, kAll), "a-bc");
  for (size_t cut = 1; cut <= bytes_.size(); ++cut) {
    EXPECT_EQ(Keys(reader, 0, cut) + Keys(reader, cut, bytes_.size()), "a-bc") << cut;
    SequenceReader other = Opened();
    EXPECT_EQ(Keys(reader, cut, kAll), Keys(other, cut, kAll)) << cut;
  }
}

TEST_P(SequenceReaderTest, RangeWithoutAMarkerHidesNoLaterRecord) {
  SequenceReader reader = Opened();
  const size_t inside = bytes_.find(std::string(50, 'x')) + 5;
  EXPECT_EQ(Keys(reader, inside, inside + 5), "");
  EXPECT_EQ(Keys(reader, inside + 5, kAll), "c");
}

TEST_P(SequenceReaderTest, MarkerInARecordAfterTheRangeIsDamage) {
  const std::string forged = kMark + SequenceRecord("forged", "evil");
  bytes_ = SequenceHeader() + SequenceRecord("a", std::string(50, 'x')) +
           SequenceRecord("b", std::string(10, 'x') + forged) + kMark + SequenceRecord("c", "last");
  SequenceReader reader = Opened();
  reader.Begin(0, SequenceHeader().size() + 30);
  ASSERT_EQ(reader.Next()->key, "a");
  EXPECT_THAT([&] { reader.Next(); }, ::testing::ThrowsMessage<Error>(
                                          HasSubstr("a record contains the file's sync marker")));
}

TEST_P(SequenceReaderTest, BatchesEndBeforeKeysExceedTheLimit) {
  bytes_ = SequenceHeader() + SequenceRecord(std::string(60, 'k'), "") +
           SequenceRecord(std::string(60, 'k'), "");
  SequenceReader reader = Opened();
  reader.Begin(0, kAll);
  EXPECT_EQ(reader.NextBatch(10, 100).keys.size(), 1);
  EXPECT_EQ(reader.NextBatch(10, 100).keys.size(), 1);
}

TEST_P(SequenceReaderTest, BatchesEndBeforeValuesExceedTheLimit) {
  SequenceReader reader = Opened();
  reader.Begin(0, kAll);
  EXPECT_EQ(reader.NextBatch(2, kAll).keys.size(), 2);
  EXPECT_EQ(reader.NextBatch(kAll, 50).keys.size(), 1);  // larger than the limit by itself
  EXPECT_EQ(reader.NextBatch(kAll, 50).keys.size(), 1);
  EXPECT_TRUE(reader.NextBatch(kAll, 50).keys.empty());
  EXPECT_THROW(reader.NextBatch(0, kAll), Error);
  EXPECT_THROW(reader.Begin(2, 1), Error);
}

TEST_P(SequenceReaderTest, BatchesOfAMappingEndBeforeAnOffsetOverflows) {
  std::string marks;
  for (int i = 0; i < 50; ++i) marks += kMark;  // a file may have any number of markers
  bytes_ = SequenceHeader() + SequenceRecord("a", "1") + marks + SequenceRecord("b", "2") +
           SequenceRecord("c", "3");
  SequenceReader reader = Opened();
  reader.Begin(0, kAll);
  const size_t expected = GetParam() == By::kMapping ? 1 : 3;
  EXPECT_EQ(reader.NextBatch(kAll, 1000).keys.size(), expected);
  EXPECT_EQ(reader.NextBatch(kAll, 1000).keys.size(), 3 - expected);
}

TEST_P(SequenceReaderTest, ViewsHoldSmallValuesAndOffsetsOfLargeOnes) {
  SequenceReader reader = Opened();
  reader.Begin(0, kAll);
  const SequenceBatch batch = reader.NextBatch(kAll, kAll);
  ASSERT_EQ(batch.views.size(), 64);
  EXPECT_EQ(batch.views.substr(0, 16), std::string("\5\0\0\0first\0\0\0\0\0\0\0", 16));
  EXPECT_EQ(batch.views.substr(16, 16), std::string(16, '\0'));
  EXPECT_EQ(batch.views.substr(32, 12), std::string("d\0\0\0xxxx\0\0\0\0", 12));
  uint32_t position = 0;
  std::memcpy(&position, batch.views.data() + 44, 4);
  EXPECT_EQ(batch.values().substr(position, 100), std::string(100, 'x'));
  EXPECT_EQ(batch.in_place.empty(), GetParam() == By::kWindows);
}

TEST_P(SequenceReaderTest, OtherFormatsAreRejected) {
  const std::string head = SequenceHeader(), record = SequenceRecord("a", "1");
  for (const auto& [position, said] :
       std::vector<std::pair<size_t, std::string>>{{0, "is not a SequenceFile"},
                                                   {3, "of version 7"},
                                                   {10, "BytesWritable for both"},
                                                   {50, "BytesWritable for both"},
                                                   {74, "is compressed by"},
                                                   {75, "is damaged"}}) {
    std::string other = head + record;
    other[position] ^= 1;
    EXPECT_THAT(Damage(other), HasSubstr(said)) << position;
  }
  for (size_t size = 0; size < head.size(); ++size) {
    EXPECT_NE(Damage(head.substr(0, size)), "none") << size;
  }
}

TEST_P(SequenceReaderTest, InconsistentLengthsAreReportedWithTheirPosition) {
  const std::string head = SequenceHeader(), record = SequenceRecord("key", "value");
  const std::string position = "at byte " + std::to_string(head.size());
  for (const size_t at : {0, 1, 3, 4, 7, 8, 11, 15, 18}) {
    std::string broken = record;
    broken[at] = static_cast<char>(broken[at] ^ 0x40);
    EXPECT_THAT(Damage(head + broken), HasSubstr(position)) << at;
  }
  for (size_t size = 1; size < record.size(); ++size) {
    EXPECT_THAT(Damage(head + record.substr(0, size)), HasSubstr(position)) << size;
  }
  // A record contains a marker, at which another range would start.
  bytes_ = head + SequenceRecord("a", "1" + kMark + "2") + kMark + SequenceRecord("b", "2");
  SequenceReader reader = Opened();
  reader.Begin(0, head.size() + 10);
  EXPECT_THROW(reader.Next(), Error);
  EXPECT_EQ(Keys(reader, 0, kAll), "ab");  // within one range it is an ordinary value
}

}  // namespace
}  // namespace hearth::formats
