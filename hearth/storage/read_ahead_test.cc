#include "hearth/storage/read_ahead.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "hearth/base/error.h"
#include "hearth/base/testing/error_testing.h"

namespace hearth::storage {
namespace {

class ReadAheadTest : public testing::Test {
 protected:
  ReadAheadTest() : bytes_(30'000'000, '\0') {  // NOLINT(bugprone-string-constructor)
    for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<char>(i * 31 >> 4);
  }
  ReadAhead Open() {
    return {[this](uint64_t offset, char* data, size_t size, const Cancellation& cancellation) {
              ++fetches_;
              fetched_ += size;
              if (fails_) Throw(ErrorCode::kUnavailable, "gone");
              if (waits_) cancellation.Pause(60);
              std::memcpy(data, bytes_.data() + offset, size);
              ++done_;
            },
            bytes_.size()};
  }
  void Expect(ReadAhead& file, uint64_t offset, size_t size) {
    std::string chunk(size, '\0');
    ASSERT_EQ(file.ReadAt(offset, chunk.data(), size), std::min(size, bytes_.size() - offset));
    ASSERT_TRUE(std::string_view(bytes_).substr(offset, size) ==
                std::string_view(chunk).substr(0, std::min(size, bytes_.size() - offset)));
  }

  std::string bytes_;
  std::atomic<int> fetches_ = 0, done_ = 0;
  std::atomic<size_t> fetched_ = 0;
  std::atomic<bool> fails_ = false, waits_ = false;
};

TEST_F(ReadAheadTest, ReadsInGrowingWindows) {
  ReadAhead file = Open();
  for (uint64_t offset = 0; offset < bytes_.size(); offset += 3001) Expect(file, offset, 3001);
  EXPECT_LE(fetches_, 9);
  EXPECT_EQ(fetched_, bytes_.size()) << "each byte once";
}

TEST_F(ReadAheadTest, FetchesLittleForRandomReads) {
  ReadAhead file = Open();
  for (uint64_t at : {20'000'000, 5'000'000, 12'345'678, 29'999'990, 1'000'000}) {
    Expect(file, at, 100);
  }
  EXPECT_LE(fetched_, 5u << 17);
}

TEST_F(ReadAheadTest, ReadsInWindowsDespiteSmallGaps) {
  ReadAhead file = Open();
  for (uint64_t offset = 50'000; offset < bytes_.size(); offset += 103'000) {
    Expect(file, offset, 100'000);
  }
  EXPECT_LE(fetches_, 9);
  EXPECT_LE(fetched_, bytes_.size());
}

TEST_F(ReadAheadTest, ContinuesAfterAFooterRead) {
  ReadAhead file = Open();
  for (uint64_t stripe = 0; stripe < bytes_.size(); stripe += 6'000'000) {
    Expect(file, stripe + 5'999'900, 100);
    for (uint64_t at = 0; at < 5'900'000; at += 100'000) Expect(file, stripe + at, 100'000);
  }
  EXPECT_LE(fetches_, 9 + 5);
  EXPECT_LE(fetched_, bytes_.size() + (5u << 17)) << "the footers twice";
}

TEST_F(ReadAheadTest, GrowsAWindowForReadsThatContinueAtAnotherOffset) {
  ReadAhead file = Open();
  for (uint64_t offset = 0; offset < 1'000'000; offset += 3001) Expect(file, offset, 3001);
  const int before = fetches_;
  for (uint64_t at = 15'000'000; at < bytes_.size(); at += 3001) Expect(file, at, 3001);
  EXPECT_LE(fetches_ - before, 9);
}

TEST_F(ReadAheadTest, FetchesAtMostHalfTooMuchForAlternatingReads) {
  ReadAhead file = Open();
  for (uint64_t at = 0; at < 9'000'000; at += 130'000) {
    for (const uint64_t start : {0, 10'000'000, 20'000'000}) Expect(file, start + at, 130'000);
  }
  EXPECT_LE(fetched_, 1.5 * 27'000'000);
}

TEST_F(ReadAheadTest, FetchesLittleForRandomReadsAfterSequentialOnes) {
  ReadAhead file = Open();
  for (uint64_t at = 0; at < 8'000'000; at += 100'000) Expect(file, at, 100'000);
  for (uint64_t at = 8'000'000; at < bytes_.size(); at += 1'000'000) Expect(file, at, 4000);
  EXPECT_LE(fetched_, 19'000'000u);
}

TEST_F(ReadAheadTest, FetchesALargeReadAfterASmallOneDirectly) {
  ReadAhead file = Open();
  Expect(file, 0, 100);
  Expect(file, 100, 29'000'000);
  EXPECT_LE(fetches_, 3);
}

TEST_F(ReadAheadTest, FetchesLargeReadsDirectly) {
  ReadAhead file = Open();
  Expect(file, 1'000'000, 25'000'000);
  EXPECT_EQ(fetches_, 1);
  EXPECT_EQ(fetched_, 25'000'000u);
  Expect(file, 26'000'000, 10'000'000);  // beyond the end of the file
}

TEST_F(ReadAheadTest, ReadsTheFileInAnyOrder) {
  ReadAhead file = Open();
  std::minstd_rand random(7);
  const auto below = [&random](uint64_t end) { return random() % end; };
  uint64_t at = 0;
  for (int i = 0; i < 2000; ++i) {
    const size_t size = below(20) == 0 ? below(12'000'000) : below(100'000);
    if (below(10) == 0) at = below(bytes_.size());
    if (below(3) == 0) at += below(200'000);
    fails_ = below(8) == 0;
    std::string chunk(size, '\0');
    try {
      chunk.resize(file.ReadAt(at, chunk.data(), size));
      const size_t there = bytes_.size() - std::min<uint64_t>(at, bytes_.size());
      ASSERT_EQ(chunk.size(), std::min(size, there));
      ASSERT_TRUE(at >= bytes_.size() || bytes_.compare(at, chunk.size(), chunk) == 0) << at;
    } catch (const Error&) {
    }
    at += size;
  }
}

TEST_F(ReadAheadTest, ReadsAgainAfterAFailedFetch) {
  ReadAhead file = Open();
  Expect(file, 0, 100);
  fails_ = true;
  std::string chunk(1'000'000, '\0');
  EXPECT_EQ(Thrown([&] { file.ReadAt(100, chunk.data(), chunk.size()); }).code(),
            ErrorCode::kUnavailable);
  fails_ = false;
  Expect(file, 100, 1'000'000);
}

TEST_F(ReadAheadTest, CloseCancelsARunningFetch) {
  const auto start = std::chrono::steady_clock::now();
  {
    ReadAhead file = Open();
    Expect(file, 0, 100);
    while (done_ < 2) std::this_thread::yield();
    waits_ = true;
    Expect(file, 100, 300'000);  // reads from the window and starts another fetch, which blocks
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(50));
}

}  // namespace
}  // namespace hearth::storage
