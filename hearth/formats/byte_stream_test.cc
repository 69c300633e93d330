#include "hearth/formats/byte_stream.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "hearth/base/testing/error_testing.h"
#include "hearth/base/testing/test_folder_testing.h"

namespace hearth::formats {
namespace {

using ::testing::HasSubstr;

// Reads `size` bytes per call.
std::string ReadAllOf(ByteSource& source, size_t size = 1000) {
  std::string all, buffer(size, '\0');
  while (const size_t count = source.Read(buffer.data(), buffer.size())) {
    all.append(buffer, 0, count);
  }
  return all;
}

// 200,000 equal bytes, then bytes that compress badly.
std::string SomeBytes() {
  std::string bytes(200'000, 'a');
  for (size_t i = 0; i < 300'000; ++i) bytes += static_cast<char>(i * i * 2654435761U >> 24);
  return bytes;
}

class ByteStreamTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  void Write(std::unique_ptr<ByteSink> sink, std::string_view bytes) {
    for (size_t at = 0; at < bytes.size(); at += 7777) sink->Write(bytes.substr(at, 7777));
    sink->Finish();
  }
  std::string FileContent() { return ReadAllOf(*OpenFileSource(path_)); }

  const std::string path_ = TestFolder() + "byte_stream_test";
};

TEST_F(ByteStreamTest, FilesRoundTripInReadsOfAnySize) {
  const std::string bytes = SomeBytes();
  Write(OpenFileSink(path_), bytes);
  for (const size_t size : {size_t{13}, size_t{1} << 20}) {
    EXPECT_EQ(ReadAllOf(*OpenFileSource(path_), size), bytes);
  }
  Write(OpenFileSink(path_), "short");
  EXPECT_EQ(FileContent(), "short") << "the file is replaced, not overwritten";
}

TEST_F(ByteStreamTest, GzipMembersAreReadAsOneStream) {
  const std::string bytes = SomeBytes();
  Write(OpenGzipSink(OpenFileSink(path_)), bytes);
  const std::string member = FileContent();
  EXPECT_LT(member.size(), bytes.size());
  const std::string two = member + member;
  EXPECT_EQ(ReadAllOf(*OpenGzipSource(OpenMemorySource(two), "two.gz")), bytes + bytes);
}

TEST_F(ByteStreamTest, DamagedGzipIsReportedByName) {
  Write(OpenGzipSink(OpenFileSink(path_)), SomeBytes());
  const std::string whole = FileContent();
  const auto error_of = [](std::string_view bytes) {
    return Thrown([&] { ReadAllOf(*OpenGzipSource(OpenMemorySource(bytes), "rows.gz")); });
  };
  std::string flipped = whole;
  flipped[whole.size() / 2] ^= 4;
  for (const std::string& bytes : {std::string(), whole.substr(0, whole.size() - 1), flipped,
                                   std::string("this is no gzip file"), whole + "and more"}) {
    const Error error = error_of(bytes);
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    EXPECT_THAT(error.message(), HasSubstr("rows.gz"));
  }
  EXPECT_THAT(error_of(whole.substr(0, whole.size() / 2)).message(), HasSubstr("truncated"));
}

TEST_F(ByteStreamTest, FileErrorsNameThePath) {
  EXPECT_EQ(CodeOf([] { OpenFileSource("/nowhere/a"); }), ErrorCode::kNotFound);
  EXPECT_THAT(Thrown([] { OpenFileSink("/nowhere/a"); }).message(), HasSubstr("/nowhere/a"));
  // Writes to /dev/full fail like writes to a full disk.
  const auto sink = OpenFileSink("/dev/full");
  const Error error = Thrown([&] {
    sink->Write("bytes");
    sink->Finish();
  });
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(error.message(), HasSubstr("/dev/full"));
}

TEST_F(ByteStreamTest, TheEndOfASourceStaysTheEnd) {
  char byte = 0;
  const auto memory = OpenMemorySource("a");
  EXPECT_EQ(memory->Read(&byte, 1), 1u);
  EXPECT_EQ(memory->Read(&byte, 1), 0u);
  EXPECT_EQ(memory->Read(&byte, 1), 0u);
  Write(OpenGzipSink(OpenFileSink(path_)), "a");
  const auto packed = OpenGzipSource(OpenFileSource(path_), "a.gz");
  EXPECT_EQ(packed->Read(&byte, 1), 1u);
  EXPECT_EQ(packed->Read(&byte, 1), 0u);
  EXPECT_EQ(packed->Read(&byte, 1), 0u);
}

TEST_F(ByteStreamTest, NothingWrittenIsAnEmptyFileOrMember) {
  Write(OpenFileSink(path_), "");
  EXPECT_EQ(FileContent(), "");
  Write(OpenGzipSink(OpenFileSink(path_)), "");
  EXPECT_GT(FileContent().size(), 0u);
  EXPECT_EQ(ReadAllOf(*OpenGzipSource(OpenFileSource(path_), "a.gz")), "");
}

TEST_F(ByteStreamTest, ReadingAFolderIsAnErrorThatNamesIt) {
  const Error error = Thrown([] { ReadAllOf(*OpenFileSource("/tmp")); });
  EXPECT_THAT(error.message(), HasSubstr("cannot read /tmp"));
}

// Records what is written, or fails if `fails` is set.
struct TestedSink : ByteSink {
  void Write(std::string_view bytes) override {
    Require(!fails, ErrorCode::kResourceExhausted, "the disk is full");
    written += bytes;
  }
  void Finish() override { ++finished; }
  std::string written;
  bool fails = false;
  int finished = 0;
};

TEST_F(ByteStreamTest, AGzipSinkFinishesTheSinkBelowOnceAndPassesItsErrors) {
  auto below = std::make_unique<TestedSink>();
  TestedSink& tested = *below;
  const auto sink = OpenGzipSink(std::move(below));
  sink->Write("bytes");
  EXPECT_EQ(tested.finished, 0);
  sink->Finish();
  EXPECT_EQ(tested.finished, 1);
  EXPECT_EQ(ReadAllOf(*OpenGzipSource(OpenMemorySource(tested.written), "a.gz")), "bytes");
  auto full = std::make_unique<TestedSink>();
  full->fails = true;
  EXPECT_EQ(CodeOf([&] { OpenGzipSink(std::move(full))->Finish(); }),
            ErrorCode::kResourceExhausted);
}

// A change of any bit of a member is detected: in the header, the data, the checksum or the size.
TEST_F(ByteStreamTest, NoDamagedByteOfTheDataIsOverlooked) {
  Write(OpenGzipSink(OpenFileSink(path_)), "some bytes");
  const std::string whole = FileContent();
  constexpr size_t kGzipHeader = 10;
  for (size_t at = kGzipHeader; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] ^= 1;
    EXPECT_EQ(CodeOf([&] { ReadAllOf(*OpenGzipSource(OpenMemorySource(flipped), "a.gz")); }),
              ErrorCode::kDataLoss)
        << at;
  }
}

}  // namespace
}  // namespace hearth::formats
