#include "hearth/formats/tfrecord.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "hearth/base/testing/error_testing.h"
#include "hearth/base/testing/test_folder_testing.h"
#include "hearth/formats/crc32c.h"

namespace hearth::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string WriteFile(const std::vector<std::string>& records, bool gzip) {
  const std::string path = TestFolder() + "tfrecord_test";
  auto sink = OpenFileSink(path);
  if (gzip) sink = OpenGzipSink(std::move(sink));
  TfRecordWriter writer(std::move(sink));
  for (const std::string& record : records) writer.Write(record);
  writer.Finish();
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove(path);
  return bytes;
}

std::vector<std::string> ReadAll(std::string_view bytes) {
  TfRecordReader reader(OpenMemorySource(bytes), "here");
  std::vector<std::string> records;
  while (const auto record = reader.Next()) records.emplace_back(*record);
  return records;
}

TEST(Crc32c, MatchesPublishedValues) {  // RFC 3720, B.4
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32c(""), 0u);
}

TEST(TfRecord, RecordsComeBackPlainAndPacked) {
  const std::vector<std::string> records = {"a", "", std::string(3 << 20, 'x'), "last"};
  EXPECT_EQ(ReadAll(WriteFile(records, false)), records);
  EXPECT_EQ(ReadAll(WriteFile(records, true)), records);
  EXPECT_EQ(ReadAll(WriteFile({}, true)).size(), 0u);
  EXPECT_EQ(ReadAll("").size(), 0u);
}

TEST(TfRecord, ConcatenatedGzipMembersAreOneFile) {
  EXPECT_THAT(ReadAll(WriteFile({"a"}, true) + WriteFile({"b", "c"}, true)),
              ElementsAre("a", "b", "c"));
}

TEST(TfRecord, RecordWhoseLengthLooksLikeGzipIsPlain) {
  const std::vector<std::string> records = {std::string(0x8b1f, 'x'), "b"};
  EXPECT_EQ(ReadAll(WriteFile(records, false)), records);
}

TEST(TfRecord, DamageIsDetectedAndNamed) {
  const std::string good = WriteFile({"one", "two"}, false);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 0x40;
    const Error error = Thrown([&] { ReadAll(bad); });
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss) << i;
    EXPECT_THAT(error.message(), HasSubstr(i < 19 ? "record 0 of here" : "record 1 of here"));
  }
  for (size_t size = 1; size < good.size(); ++size) {
    if (size == 19) continue;  // the end of the first record
    EXPECT_EQ(Thrown([&] { ReadAll(good.substr(0, size)); }).code(), ErrorCode::kDataLoss);
  }
  const std::string packed = WriteFile({"one", "two"}, true);
  EXPECT_THAT(Thrown([&] { ReadAll(packed.substr(0, packed.size() - 3)); }).message(),
              HasSubstr("truncated"));
}

std::string Header(uint64_t length) {
  std::string header(12, '\0');
  std::memcpy(header.data(), &length, sizeof(length));
  const uint32_t crc = MaskedCrc32c({header.data(), 8});
  std::memcpy(header.data() + 8, &crc, sizeof(crc));
  return header;
}

// Produces zeros after the header, as a few bytes of gzip can.
class EndlessZeros : public ByteSource {
 public:
  explicit EndlessZeros(uint64_t length) : header_(Header(length)) {}
  size_t Read(char* data, size_t size) override {
    std::memset(data, 0, size);
    std::memcpy(data, header_.data(), header_.size());
    size = std::max(size, header_.size());
    header_.clear();
    given += size;
    return size;
  }
  std::string header_;
  uint64_t given = 0;
};

TEST(TfRecord, LengthWithACorrectChecksumCannotExhaustMemory) {
  EXPECT_THAT(Thrown([] { ReadAll(Header(100 << 20) + "few bytes"); }).message(),
              HasSubstr("truncated"));
}

TEST(TfRecord, OversizedRecordIsRejectedByItsLength) {
  for (const uint64_t length : {kLargestRecordBytes + 1, uint64_t{1} << 39, ~uint64_t{0}}) {
    auto source = std::make_unique<EndlessZeros>(length);
    const EndlessZeros& zeros = *source;
    TfRecordReader reader(std::move(source), "here");
    const Error error = Thrown([&] { reader.Next(); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message(),
                HasSubstr(fmt::format("record 0 of here has {} bytes, at byte 0, ", length)));
    EXPECT_LE(zeros.given, 1u << 20);
  }
}

TEST(TfRecord, PositionOfALargeRecordIsNamed) {
  const std::string file = WriteFile({"one", std::string(3000, 'x')}, true);
  TfRecordReader reader(OpenMemorySource(file), "here", 1000);
  EXPECT_EQ(reader.Next(), "one");
  EXPECT_THAT(
      Thrown([&] { reader.Next(); }).message(),
      HasSubstr("record 1 of here has 3000 bytes, at byte 19 of the uncompressed data, which "
                "exceeds the limit of 1000"));
}

TEST(TfRecord, WritesTheDocumentedBytes) {
  std::string expected = Header(3) + "abc";
  const uint32_t crc = MaskedCrc32c("abc");
  expected.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
  EXPECT_EQ(WriteFile({"abc"}, false), expected);
}

TEST(TfRecord, ARecordOfExactlyTheLimitIsRead) {
  for (const bool gzip : {false, true}) {
    const std::string file = WriteFile({std::string(1000, 'x'), "next"}, gzip);
    TfRecordReader reader(OpenMemorySource(file), "here", 1000);
    EXPECT_EQ(reader.Next()->size(), 1000u);
    EXPECT_EQ(reader.Next(), "next");
    EXPECT_FALSE(reader.Next());
    EXPECT_FALSE(reader.Next()) << "the end stays the end";
    TfRecordReader strict(OpenMemorySource(file), "here", 999);
    EXPECT_EQ(CodeOf([&] { strict.Next(); }), ErrorCode::kInvalidArgument);
  }
}

// Returns one byte per call. At the end, throws the error of a lost disk if `fails` is set.
class SlowSource : public ByteSource {
 public:
  SlowSource(std::string bytes, bool fails) : bytes_(std::move(bytes)), fails_(fails) {}
  size_t Read(char* data, size_t size) override {
    if (size == 0 || at_ == bytes_.size()) {
      Require(!fails_, ErrorCode::kUnavailable, "the disk is gone");
      return 0;
    }
    *data = bytes_[at_++];
    return 1;
  }

 private:
  std::string bytes_;
  bool fails_;
  size_t at_ = 0;
};

TEST(TfRecord, SourcesMayReturnFewBytesAndTheirErrorsPassThrough) {
  for (const bool gzip : {false, true}) {
    const std::string file = WriteFile({"one", "", "three"}, gzip);
    TfRecordReader whole(std::make_unique<SlowSource>(file, false), "here");
    EXPECT_EQ(whole.Next(), "one");
    EXPECT_EQ(whole.Next(), "");
    EXPECT_EQ(whole.Next(), "three");
    EXPECT_FALSE(whole.Next());
    const Error error = Thrown([&] {
      TfRecordReader broken(std::make_unique<SlowSource>(file.substr(0, 25), true), "here");
      while (broken.Next()) continue;
    });
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_EQ(error.message(), "the disk is gone");
  }
}

TEST(TfRecord, FilesShorterThanAHeaderAreDamaged) {
  for (const std::string bytes : {"\x1f", "\x1f\x8b", "\x1f\x8b\x08", "x", "eleven byte"}) {
    const Error error = Thrown([&] { ReadAll(bytes); });
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss) << bytes.size();
    EXPECT_THAT(error.message(), HasSubstr("here"));
  }
}

TEST(TfRecord, OffsetOfADamagedRecordCountsFromTheFilesStart) {
  std::string file = WriteFile({"one", "two", "three"}, false);
  file[2 * 19 + 12] ^= 1;
  TfRecordReader reader(OpenMemorySource(file), "here");
  EXPECT_EQ(reader.Next(), "one");
  EXPECT_EQ(reader.Next(), "two");
  EXPECT_EQ(Thrown([&] { reader.Next(); }).message(),
            "record 2 of here has a wrong checksum, at byte 38: the file is damaged, or not a "
            "TFRecord file");
}

}  // namespace
}  // namespace hearth::formats
