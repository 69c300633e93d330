#include "hearth/formats/sequence_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
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

class SequenceRecordsTest : public ::testing::Test {
 protected:
  SequenceRecordsTest() {
    close(mkstemp(path_.data()));
    bytes_ = SequenceHeader() + SequenceRecord("a", "first") + SequenceRecord("", "") + kMark +
             SequenceRecord("b", std::string(100, 'x')) + kMark + kMark +
             SequenceRecord("c", "last");
  }
  ~SequenceRecordsTest() override { std::filesystem::remove(path_); }

  std::shared_ptr<const MappedFile> Mapped() const {
    std::ofstream(path_) << bytes_;
    return MappedFile::Open(path_);
  }

  std::string Keys(uint64_t low, uint64_t high) const {
    SequenceRecords records(Mapped(), low, high);
    std::string keys;
    for (const auto& [key, value] : records.Next(kAll, kAll)) {
      keys += key.empty() ? "-" : std::string(key);
    }
    EXPECT_TRUE(records.Next(kAll, kAll).empty());
    return keys;
  }

  std::string Damage(const std::string& bytes) {
    bytes_ = bytes;
    try {
      Keys(0, kAll);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.message();
    }
    return "none";
  }

  std::string path_ = ::testing::TempDir() + "sequence-XXXXXX";
  std::string bytes_;
};

TEST_F(SequenceRecordsTest, EachRecordIsInOneOfTwoRangesWhereverTheyPart) {
  EXPECT_EQ(Keys(0, kAll), "a-bc");
  for (size_t cut = 0; cut <= bytes_.size(); ++cut) {
    EXPECT_EQ(Keys(0, cut) + Keys(cut, bytes_.size()), "a-bc") << cut;
  }
}

TEST_F(SequenceRecordsTest, BatchesEndBeforeARecordThatIsTooMuch) {
  SequenceRecords records(Mapped(), 0, kAll);
  EXPECT_EQ(records.Next(2, kAll).size(), 2);
  EXPECT_EQ(records.Next(kAll, 50).size(), 1);  // larger than that by itself
  EXPECT_EQ(records.Next(kAll, 50).size(), 1);
  EXPECT_TRUE(records.Next(kAll, 50).empty());
}

TEST_F(SequenceRecordsTest, BatchesEndBeforeAValueThatLiesTooFarAway) {
  std::string marks;
  for (int i = 0; i < 50; ++i) marks += kMark;  // of which a file may have any number
  bytes_ = SequenceHeader() + SequenceRecord("a", "1") + marks + SequenceRecord("b", "2") +
           SequenceRecord("c", "3");
  SequenceRecords records(Mapped(), 0, kAll);
  EXPECT_EQ(records.Next(kAll, 1000).size(), 1);
  EXPECT_EQ(records.Next(kAll, 1000).size(), 2);
}

TEST(BinaryViewsTest, PlacesBeyondThirtyOneBitsAreRefused) {
  constexpr size_t kBytes = size_t{3} << 30;
  void* const zeros =
      ::mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(zeros, MAP_FAILED);
  const std::string_view all(static_cast<const char*>(zeros), kBytes);
  EXPECT_THROW(BinaryViews({{"", all.substr(0, 20)}, {"", all.substr(kBytes - 20)}}), Error);
  ::munmap(zeros, kBytes);
}

TEST_F(SequenceRecordsTest, ViewsHoldSmallValuesAndThePlacesOfLargeOnes) {
  SequenceRecords records(Mapped(), 0, kAll);
  const auto found = records.Next(kAll, kAll);
  const std::string views = BinaryViews(found);
  ASSERT_EQ(views.size(), 64);
  EXPECT_EQ(views.substr(0, 16), std::string("\5\0\0\0first\0\0\0\0\0\0\0", 16));
  EXPECT_EQ(views.substr(16, 16), std::string(16, '\0'));
  EXPECT_EQ(views.substr(32, 12), std::string("d\0\0\0xxxx\0\0\0\0", 12));
  uint32_t place = 0;
  std::memcpy(&place, views.data() + 44, 4);
  EXPECT_EQ(std::string_view(found[0].value.data() + place, 100), found[2].value);
}

TEST_F(SequenceRecordsTest, OtherKindsAreLeftToOthers) {
  const std::string head = SequenceHeader();
  EXPECT_EQ(head.size(), SequenceRecords::HeadBytes());
  EXPECT_TRUE(SequenceRecords::Reads(head));
  EXPECT_FALSE(SequenceRecords::Reads(head.substr(0, head.size() - 1)));
  for (const size_t place : {0, 3, 10, 50, 74, 75, 79}) {
    std::string other = head;
    other[place] ^= 1;
    EXPECT_FALSE(SequenceRecords::Reads(other)) << place;
  }
  EXPECT_THAT(Damage("SEQ\5"), HasSubstr("is no SequenceFile of BytesWritables"));
}

TEST_F(SequenceRecordsTest, LengthsThatDoNotAgreeAreNamedWithTheirPlace) {
  const std::string head = SequenceHeader(), record = SequenceRecord("key", "value");
  const std::string place = "is damaged at byte " + std::to_string(head.size());
  for (const size_t at : {0, 1, 3, 4, 7, 8, 11, 15, 18}) {
    std::string broken = record;
    broken[at] = static_cast<char>(broken[at] ^ 0x40);
    EXPECT_THAT(Damage(head + broken), HasSubstr(place)) << at;
  }
  for (size_t size = 1; size < record.size(); ++size) {
    EXPECT_THAT(Damage(head + record.substr(0, size)), HasSubstr(place)) << size;
  }
  // A record with a mark in it: another range begins there.
  bytes_ = head + SequenceRecord("a", "1" + kMark + "2") + kMark + SequenceRecord("b", "2");
  SequenceRecords records(Mapped(), 0, head.size() + 10);
  EXPECT_THROW(records.Next(0, kAll), Error);
  EXPECT_THROW(records.Next(kAll, kAll), Error);
  EXPECT_THROW(SequenceRecords(Mapped(), 2, 1), Error);
}

}  // namespace
}  // namespace hearth::formats
