#include "hearth/storage/read_ahead.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "hearth/base/error.h"
#include "hearth/base/error_testing.h"

namespace hearth::storage {
namespace {

class ReadAheadTest : public testing::Test {
 protected:
  ReadAheadTest() : bytes_(30'000'000, '\0') {
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
    std::string piece(size, '\0');
    ASSERT_EQ(file.ReadAt(offset, piece.data(), size), std::min(size, bytes_.size() - offset));
    ASSERT_TRUE(std::string_view(bytes_).substr(offset, size) ==
                std::string_view(piece).substr(0, std::min(size, bytes_.size() - offset)));
  }

  std::string bytes_;
  std::atomic<int> fetches_ = 0, done_ = 0;
  std::atomic<size_t> fetched_ = 0;
  std::atomic<bool> fails_ = false, waits_ = false;
};

TEST_F(ReadAheadTest, ReadsInWindowsThatGrow) {
  ReadAhead file = Open();
  for (uint64_t offset = 0; offset < bytes_.size(); offset += 3001) Expect(file, offset, 3001);
  EXPECT_LE(fetches_, 9);
  EXPECT_EQ(fetched_, bytes_.size()) << "each byte once";
}

TEST_F(ReadAheadTest, FetchesLittleForReadsHereAndThere) {
  ReadAhead file = Open();
  for (uint64_t at : {20'000'000, 5'000'000, 12'345'678, 29'999'990, 1'000'000}) {
    Expect(file, at, 100);
  }
  EXPECT_LE(fetched_, 5u << 17);
}

TEST_F(ReadAheadTest, FetchesLargeReadsAsTheyAre) {
  ReadAhead file = Open();
  Expect(file, 1'000'000, 25'000'000);
  EXPECT_EQ(fetches_, 1);
  EXPECT_EQ(fetched_, 25'000'000u);
  Expect(file, 26'000'000, 10'000'000);  // until the end
}

TEST_F(ReadAheadTest, FailsWhereTheFetchFailsAndThenReadsOn) {
  ReadAhead file = Open();
  Expect(file, 0, 100);
  fails_ = true;
  std::string piece(1'000'000, '\0');
  EXPECT_EQ(Thrown([&] { file.ReadAt(100, piece.data(), piece.size()); }).code(),
            ErrorCode::kUnavailable);
  fails_ = false;
  Expect(file, 100, 1'000'000);
}

TEST_F(ReadAheadTest, EndsAFetchThatIsUnderWayWhenItIsClosed) {
  const auto start = std::chrono::steady_clock::now();
  {
    ReadAhead file = Open();
    Expect(file, 0, 100);
    while (done_ < 2) std::this_thread::yield();
    waits_ = true;
    Expect(file, 100, 300'000);  // takes what is there and starts another, which waits
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(50));
}

}  // namespace
}  // namespace hearth::storage
