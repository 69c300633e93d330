// Tests of compressed SequenceFiles, with compressed records or compressed blocks.
#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hearth/base/testing/error_testing.h"
#include "hearth/formats/sequence_reader.h"

namespace hearth::formats {
namespace {

using namespace std::string_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Pairs = std::vector<std::pair<std::string, std::string>>;

constexpr uint64_t kWholeFile = uint64_t{1} << 40;
const std::string kBlockMark =
    "\xff\xff\xff\xff"
    "fedcba9876543210";

std::string BigEndian(size_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<char>(value >> shift));
  return bytes;
}

// Hadoop's variable-length integer.
std::string HadoopVInt(uint64_t value) {
  if (value < 128) return {static_cast<char>(value)};
  std::string bytes;
  for (; value > 0; value >>= 8) bytes.insert(bytes.begin(), static_cast<char>(value));
  return static_cast<char>(-112 - static_cast<int>(bytes.size())) + bytes;
}

std::string Writable(const std::string& bytes) { return BigEndian(bytes.size()) + bytes; }

// These files' codec puts a 'z' before the bytes.
std::string Zipped(const std::string& plain) { return "z" + plain; }

std::string HeaderOf(bool blocks, const std::string& codec = "test.Codec") {
  const std::string type = "\x22org.apache.hadoop.io.BytesWritable";
  return "SEQ\x06" + type + type + "\1" + std::string(1, blocks ? '\1' : '\0') +
         HadoopVInt(codec.size()) + codec + BigEndian(0) + kBlockMark.substr(4);
}

// The four parts of a block: lengths of keys, keys, lengths of values, values.
std::vector<std::string> PartsOf(const Pairs& records) {
  std::vector<std::string> parts(4);
  for (const auto& [key, value] : records) {
    parts[0] += HadoopVInt(key.size() + 4);
    parts[1] += Writable(key);
    parts[2] += HadoopVInt(value.size() + 4);
    parts[3] += Writable(value);
  }
  return parts;
}

std::string BlockOf(uint64_t count, const std::vector<std::string>& parts) {
  std::string block = kBlockMark + HadoopVInt(count);
  for (const std::string& part : parts) block += HadoopVInt(part.size() + 1) + Zipped(part);
  return block;
}
std::string BlockOf(const Pairs& records) { return BlockOf(records.size(), PartsOf(records)); }

class SequenceBlocksTest : public ::testing::Test {
 protected:
  SequenceReader Open() {
    auto windows = std::make_unique<WindowedBytes>(
        "seq", bytes_.size(),
        [this](uint64_t at, size_t count) { return bytes_.substr(at, count); });
    return {std::move(windows), "seq", [this](const std::string& codec) {
              SequenceReader::Unpack unpack;
              if (codec == "test.Codec") {
                unpack = [this](std::string_view packed) {
                  ++unpacked_;
                  Require(packed.starts_with('z'), ErrorCode::kDataLoss, "no z");
                  return std::string(packed.substr(1));
                };
              }
              return unpack;
            }};
  }

  std::string Keys(uint64_t begin, uint64_t end) {
    SequenceReader reader = Open();
    reader.Begin(begin, end);
    std::string keys;
    while (const auto record = reader.Next()) keys += record->key;
    EXPECT_EQ(reader.Count(begin, end), keys.size());
    return keys;
  }

  // Returns the error message of reading these blocks.
  std::string ErrorOf(const std::string& blocks) {
    bytes_ = HeaderOf(true) + blocks;
    const Error error = Thrown([&] {
      SequenceReader reader = Open();
      reader.Begin(0, kWholeFile);
      while (reader.Next()) continue;
    });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("seq is damaged: "));
    return error.message();
  }

  std::string bytes_;
  int unpacked_ = 0;
};

TEST_F(SequenceBlocksTest, EachRecordIsInExactlyOneRange) {
  bytes_ = HeaderOf(true) + BlockOf({{"a", "first"}, {"b", ""}}) + BlockOf(Pairs{}) +
           BlockOf({{"c", std::string(300, 'x')}}) + BlockOf({{"d", "last"}});
  EXPECT_EQ(Keys(0, kWholeFile), "abcd");
  for (size_t cut = 1; cut <= bytes_.size(); ++cut) {
    EXPECT_EQ(Keys(0, cut) + Keys(cut, kWholeFile), "abcd") << cut;
  }
}

TEST_F(SequenceBlocksTest, CountsRecordsWithoutDecompression) {
  bytes_ = HeaderOf(true) + BlockOf({{"a", "1"}, {"b", "2"}}) + BlockOf({{"c", "3"}});
  EXPECT_EQ(Open().Count(0, kWholeFile), 3u);
  EXPECT_EQ(unpacked_, 0);
}

TEST_F(SequenceBlocksTest, BatchesContinueWithinABlock) {
  bytes_ = HeaderOf(true) + BlockOf({{"a", "1"}, {"b", "2"}, {"c", "3"}}) + BlockOf({{"d", "4"}});
  SequenceReader reader = Open();
  EXPECT_TRUE(reader.packed());
  reader.Begin(0, kWholeFile);
  EXPECT_EQ(reader.NextBatch(2, 100).keys, (std::vector<std::string>{"a", "b"}));
  const SequenceBatch rest = reader.NextBatch(5, 100);
  EXPECT_EQ(rest.keys, (std::vector<std::string>{"c", "d"}));
  EXPECT_EQ(rest.values(), "34");
  EXPECT_TRUE(rest.in_place.empty()) << "decompressed values are not in the file";
  EXPECT_TRUE(reader.NextBatch(5, 100).keys.empty());
}

TEST_F(SequenceBlocksTest, DamageIsReportedWithItsBlock) {
  const std::string good = BlockOf({{"a", "1"}});
  const size_t head = HeaderOf(true).size();
  const std::string second = fmt::format("at byte {}", head + good.size() + kBlockMark.size());
  const auto damaged = [&](size_t part, const std::string& bytes) {
    auto parts = PartsOf({{"k", "v"}});
    parts[part] = bytes;
    return ErrorOf(good + BlockOf(1, parts));
  };
  EXPECT_THAT(damaged(0, ""), AllOf(HasSubstr("an invalid length of -1"), HasSubstr(second)));
  EXPECT_THAT(damaged(0, "\x06"), AllOf(HasSubstr("shorter than its lengths"), HasSubstr(second)));
  EXPECT_THAT(
      damaged(1, BigEndian(2) + "k"),
      AllOf(HasSubstr("the length in a key or value of 5 bytes is wrong"), HasSubstr(second)));
  EXPECT_THAT(damaged(2, "\xff"), AllOf(HasSubstr("an invalid length of -1"), HasSubstr(second)));
  EXPECT_THAT(damaged(2, "\x8f"), HasSubstr(second)) << "the length ends early";
  EXPECT_THAT(damaged(3, ""), AllOf(HasSubstr("shorter than its lengths"), HasSubstr(second)));
}

TEST_F(SequenceBlocksTest, InvalidCountsAndSizesAreRefusedBeforeTheirBytesAreRead) {
  const auto parts = PartsOf({{"k", "v"}});
  EXPECT_THAT(ErrorOf(BlockOf(2, parts)), HasSubstr("an invalid length of -1"))
      << "one record of two";
  EXPECT_THAT(ErrorOf(BlockOf(uint64_t{1} << 31, parts)),
              HasSubstr("a block claims 2147483648 records"));
  EXPECT_THAT(ErrorOf(kBlockMark + "\xff"), HasSubstr("an invalid length of -1"));
  EXPECT_THAT(ErrorOf(kBlockMark + "\1" + HadoopVInt(uint64_t{1} << 62)),
              HasSubstr("it ends inside a block"));
  EXPECT_EQ(unpacked_, 4) << "of the first block only";
}

TEST_F(SequenceBlocksTest, APartThatCannotBeDecompressedIsReportedWithTheReason) {
  std::string block = BlockOf({{"k", "v"}});
  block[kBlockMark.size() + 2] = 'y';
  EXPECT_THAT(ErrorOf(block), HasSubstr("a value cannot be decompressed (no z)"));
}

TEST_F(SequenceBlocksTest, EveryTruncationIsReported) {
  const std::string blocks = BlockOf({{"a", "first"}}) + BlockOf({{"b", "second"}});
  const size_t first = BlockOf({{"a", "first"}}).size(), mark = kBlockMark.size();
  for (size_t size = 1; size < blocks.size(); ++size) {
    // A file may end before or after a marker.
    if (size == mark || size == first || size == first + mark) continue;
    EXPECT_NE(ErrorOf(blocks.substr(0, size)), "") << size;
  }
  EXPECT_THAT(ErrorOf(BlockOf({{"a", "1"}}) + "more than a block"),
              HasSubstr("a block does not start with a sync marker"));
  EXPECT_THAT(ErrorOf("\xff\xff\xff\xff" + std::string(16, 'm')),
              HasSubstr("a sync marker differs from the header's"));
}

TEST_F(SequenceBlocksTest, MarkerInABlockAfterTheRangeIsDamage) {
  bytes_ = HeaderOf(true) + BlockOf({{"a", std::string(50, 'x') + kBlockMark}});
  SequenceReader reader = Open();
  reader.Begin(0, HeaderOf(true).size() + 20);
  EXPECT_THAT(Thrown([&] { reader.Next(); }).message(),
              HasSubstr("a block contains the file's sync marker"));
  EXPECT_EQ(Keys(0, kWholeFile), "a") << "within one range it is an ordinary value";
}

std::string RecordOf(const std::string& key, const std::string& packed) {
  const std::string written = Writable(key);
  return BigEndian(written.size() + packed.size()) + BigEndian(written.size()) + written + packed;
}

TEST_F(SequenceBlocksTest, ValuesOfSingleRecordsAreDecompressed) {
  const std::string good = RecordOf("a", Zipped(Writable("one")));
  bytes_ = HeaderOf(false) + good + RecordOf("b", Zipped(Writable("")));
  SequenceReader reader = Open();
  reader.Begin(0, kWholeFile);
  EXPECT_EQ(reader.Next()->value, "one");
  EXPECT_EQ(reader.Next()->value, "");
  EXPECT_FALSE(reader.Next());

  const std::string position = fmt::format("at byte {}", HeaderOf(false).size() + good.size());
  for (const auto& [packed, reason] : std::vector<std::pair<std::string, std::string>>{
           {Writable("b"), "a value cannot be decompressed (no z)"},
           {Zipped("bc"), "the length in a key or value of 2 bytes is wrong"},
           {Zipped(BigEndian(2) + "b"), "the length in a key or value of 5 bytes is wrong"}}) {
    bytes_ = HeaderOf(false) + good + RecordOf("b", packed);
    SequenceReader damaged = Open();
    damaged.Begin(0, kWholeFile);
    EXPECT_EQ(damaged.Next()->key, "a");
    EXPECT_THAT(Thrown([&] { damaged.Next(); }).message(),
                AllOf(HasSubstr(reason), HasSubstr(position)));
  }
}

TEST_F(SequenceBlocksTest, AnUnknownCodecIsNamed) {
  bytes_ = HeaderOf(true, "other.Codec");
  const Error error = Thrown([&] { Open(); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("seq is compressed by other.Codec"));
}

TEST_F(SequenceBlocksTest, MetadataOfTheWriterIsSkipped) {
  const std::string plain = HeaderOf(true);
  const size_t pairs = plain.size() - 20;
  const auto with = [&](const std::string& count, const std::string& texts) {
    return plain.substr(0, pairs) + count + texts + plain.substr(pairs + 4);
  };
  bytes_ = with(BigEndian(1), "\4name\5value") + BlockOf({{"a", "1"}});
  EXPECT_EQ(Keys(0, kWholeFile), "a");
  for (const auto& [count, texts] : std::vector<std::pair<std::string, std::string>>{
           {BigEndian(2), "\4name\5value"},                            // fewer than announced
           {BigEndian(0xffffffff), ""},                                // more than any file has
           {BigEndian(1), "\4name\xff"},                               // a negative length
           {BigEndian(1), "\x88\x7f\xff\xff\xff\xff\xff\xff\xff"}}) {  // the largest length
    bytes_ = with(count, texts);
    EXPECT_EQ(CodeOf([&] { Open(); }), ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace hearth::formats
