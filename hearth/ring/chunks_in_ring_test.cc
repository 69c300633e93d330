#include "hearth/batch/chunks_image.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/batch/batch_view.h"
#include "hearth/ring/ring_reader.h"
#include "hearth/ring/ring_writer.h"

namespace hearth::ring {
namespace {

// Chunks in a batch, each with the flag that marks the last chunk of a value.
std::vector<std::pair<std::string, bool>> ChunksIn(const batch::BatchView& batch) {
  std::vector<std::pair<std::string, bool>> found;
  for (int64_t i = 0; i < batch.rows(); ++i) {
    found.emplace_back(batch.column("piece").Bytes(i), batch.column("last").AsInt64(i) != 0);
  }
  return found;
}

class ChunksTest : public ::testing::Test {
 protected:
  bool Write(const std::vector<std::string>& chunks, bool last) {
    const std::vector<std::string_view> views(chunks.begin(), chunks.end());
    return writer_.WriteChunks(batch::ChunksImage(views, last), Soon());
  }
  std::vector<std::pair<std::string, bool>> Read() {
    return ChunksIn(batch::BatchView(reader_.Next(Soon()).image));
  }

  RingEnds ends_ = CreateRing(1 << 16);
  RingWriter writer_{std::move(ends_.writer)};
  RingReader reader_{std::move(ends_.reader)};
};

TEST_F(ChunksTest, AreReadLikeAnyBatch) {
  const std::vector<std::string> nine = {
      "one", "", std::string(1000, 'x'), "four", "5", "6", "7", "", "nine"};
  ASSERT_TRUE(Write(nine, true));
  ASSERT_TRUE(Write({"start of a"}, false));
  ASSERT_TRUE(Write({"", "long one"}, false));
  ASSERT_TRUE(Write({""}, true));
  const auto found = Read();
  ASSERT_EQ(found.size(), nine.size());
  for (size_t i = 0; i < nine.size(); ++i) EXPECT_EQ(found[i], std::pair(nine[i], true)) << i;
  using Chunks = std::vector<std::pair<std::string, bool>>;
  EXPECT_EQ(Read(), (Chunks{{"start of a", false}}));
  EXPECT_EQ(Read(), (Chunks{{"", true}, {"long one", false}}));
  EXPECT_EQ(Read(), (Chunks{{"", true}}));
}

TEST_F(ChunksTest, LargerThanTheRingAreRejected) {
  EXPECT_EQ(CodeOf([&] { Write({std::string(1 << 16, 'x')}, true); }),
            ErrorCode::kResourceExhausted);
  EXPECT_TRUE(Write({"still"}, true)) << "the ring must be unchanged";
}

TEST_F(ChunksTest, WriteReturnsFalseAfterTheReaderCloses) {
  reader_.Close();
  EXPECT_FALSE(Write({"late"}, true));
}

}  // namespace
}  // namespace hearth::ring
