#include "hearth/batch/chunks_image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "hearth/base/testing/error_testing.h"
#include "hearth/batch/batch_view.h"

namespace hearth::batch {
namespace {

// Memory for an image, filled with ones.
class DirtyImage {
 public:
  explicit DirtyImage(size_t size) : words_((size + 7) / 8, ~uint64_t{0}), size_(size) {}
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(words_)).first(size_); }

 private:
  std::vector<uint64_t> words_;
  const size_t size_;
};

TEST(ChunksImageTest, FlagsAllChunksButTheLastUnlessItsValueIsComplete) {
  for (const bool complete : {false, true}) {
    for (const size_t count : {1, 7, 8, 9, 64, 65}) {
      const std::vector<std::string_view> chunks(count, "x");
      const ChunksImage image(chunks, complete);
      EXPECT_EQ(image.rows(), static_cast<int64_t>(count));
      DirtyImage memory(image.bytes());
      image.Write(memory.bytes());
      const BatchView batch(memory.bytes());
      ASSERT_EQ(batch.rows(), static_cast<int64_t>(count));
      for (int64_t i = 0; i < batch.rows(); ++i) {
        EXPECT_EQ(batch.columns()[0].Bytes(i), "x");
        const bool ends = complete || i + 1 < batch.rows();
        EXPECT_EQ(batch.columns()[1].AsInt64(i), ends ? 1 : 0) << i << " of " << count;
      }
    }
  }
}

TEST(ChunksImageTest, MayHaveNoChunksOrNoBytes) {
  for (const std::vector<std::string_view>& chunks :
       {std::vector<std::string_view>{}, std::vector<std::string_view>{"", ""}}) {
    const ChunksImage image(chunks, true);
    DirtyImage memory(image.bytes());
    image.Write(memory.bytes());
    const BatchView batch(memory.bytes());
    EXPECT_EQ(batch.rows(), static_cast<int64_t>(chunks.size()));
    for (int64_t i = 0; i < batch.rows(); ++i) EXPECT_EQ(batch.columns()[0].Bytes(i), "");
  }
}

// Only the sizes are checked: the chunks are not read, so they need not exist.
TEST(ChunksImageTest, RejectsTwoGibibytes) {
  const char byte = 'x';
  const std::string_view half(&byte, size_t{1} << 30), less(&byte, (size_t{1} << 30) - 1);
  const std::vector<std::string_view> fit = {half, less}, too_large = {half, half};
  EXPECT_GT(ChunksImage(fit, true).bytes(), (size_t{1} << 31) - 1);
  EXPECT_EQ(CodeOf([&] { ChunksImage(too_large, true); }), ErrorCode::kInvalidArgument);
}

TEST(ChunksImageTest, RejectsMemoryOfAnotherSize) {
  const std::vector<std::string_view> chunks = {"a"};
  const ChunksImage image(chunks, true);
  for (const size_t size : {image.bytes() - 8, image.bytes() + 8}) {
    DirtyImage memory(size);
    EXPECT_EQ(CodeOf([&] { image.Write(memory.bytes()); }), ErrorCode::kInternal);
    EXPECT_TRUE(std::ranges::all_of(memory.bytes(),
                                    [](std::byte byte) { return byte == std::byte{0xff}; }));
  }
}

}  // namespace
}  // namespace hearth::batch
