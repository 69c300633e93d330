#include "hearth/formats/file_bytes.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "hearth/base/testing/error_testing.h"

namespace hearth::formats {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A file and a log of the reads from it.
class WindowedBytesTest : public ::testing::Test {
 protected:
  using Reads = std::vector<std::pair<uint64_t, size_t>>;  // positions and sizes

  WindowedBytesTest() {
    for (size_t i = 0; i < 1 << 20; ++i) content_ += static_cast<char>(i * 2654435761U >> 24);
  }

  WindowedBytes Open() {
    return {"hdfs://nn/a", content_.size(), [this](uint64_t at, size_t count) {
              reads_.emplace_back(at, count);
              return at < content_.size() ? content_.substr(at, count) : "";
            }};
  }
  Reads TakeReads() { return std::exchange(reads_, {}); }

  std::string content_;
  Reads reads_;
};

TEST_F(WindowedBytesTest, ReturnsAnyRange) {
  WindowedBytes bytes = Open();
  EXPECT_EQ(bytes.size(), content_.size());
  for (const auto& [at, count] : Reads{{0, 1},
                                       {5000, 10},
                                       {4090, 20},  // before and after the end of the window
                                       {700'000, 300'000},  // larger than a window
                                       {0, 1 << 20},
                                       {(1 << 20) - 1, 1},
                                       {1 << 20, 0},
                                       {17, 0}}) {
    EXPECT_EQ(bytes.At(at, count), std::string_view(content_).substr(at, count)) << at;
  }
}

TEST_F(WindowedBytesTest, ReadsAheadAsFarAsExpected) {
  WindowedBytes bytes = Open();
  bytes.At(100, 10);
  EXPECT_THAT(TakeReads(), ElementsAre(std::pair(100, 4096))) << "little without a hint";
  bytes.At(200, 10);
  EXPECT_THAT(TakeReads(), IsEmpty());
  bytes.Expect(50'000);
  bytes.At(10'000, 10);
  EXPECT_THAT(TakeReads(), ElementsAre(std::pair(10'000, 40'000)));
  bytes.Expect(1 << 20);
  bytes.At(100'000, 10);
  EXPECT_THAT(TakeReads(), ElementsAre(std::pair(100'000, bytes.window()))) << "one window at most";
}

TEST_F(WindowedBytesTest, KeepsTheBytesThatTwoWindowsShare) {
  WindowedBytes bytes = Open();
  bytes.At(0, 10);
  TakeReads();
  EXPECT_EQ(bytes.At(4090, 20), std::string_view(content_).substr(4090, 20));
  EXPECT_THAT(TakeReads(), ElementsAre(std::pair(4096, 4096)));
  bytes.At(0, 10);
  EXPECT_THAT(TakeReads(), ElementsAre(std::pair(0, 4096))) << "earlier bytes are read again";
}

TEST_F(WindowedBytesTest, DoesNotReadBeyondTheEnd) {
  WindowedBytes bytes = Open();
  bytes.At((1 << 20) - 3, 3);
  EXPECT_THAT(TakeReads(), ElementsAre(std::pair((1 << 20) - 3, 3)));
}

TEST_F(WindowedBytesTest, AFileThatIsNowShorterIsNamed) {
  WindowedBytes bytes = Open();
  content_.resize(1000);
  const Error error = Thrown([&] { bytes.At(900, 200); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("hdfs://nn/a"), HasSubstr("byte 1000 of 1048576")));
}

TEST_F(WindowedBytesTest, CanBeReadAfterAFailedRead) {
  bool fails = true;
  WindowedBytes bytes("file", content_.size(), [&](uint64_t at, size_t count) {
    Require(!fails, ErrorCode::kUnavailable, "the DataNode is gone");
    return content_.substr(at, count);
  });
  EXPECT_EQ(CodeOf([&] { bytes.At(500, 10); }), ErrorCode::kUnavailable);
  fails = false;
  EXPECT_EQ(bytes.At(500, 10), std::string_view(content_).substr(500, 10));
  EXPECT_EQ(bytes.At(300, 10), std::string_view(content_).substr(300, 10));
}

}  // namespace
}  // namespace hearth::formats
