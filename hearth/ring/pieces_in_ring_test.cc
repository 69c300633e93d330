#include "hearth/batch/pieces_image.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "hearth/base/deadline_testing.h"
#include "hearth/base/error_testing.h"
#include "hearth/batch/batch_view.h"
#include "hearth/ring/ring_reader.h"
#include "hearth/ring/ring_writer.h"

namespace hearth::ring {
namespace {

// What lies in a batch of pieces: each with whether it is the last of what it belongs to.
std::vector<std::pair<std::string, bool>> PiecesIn(const batch::BatchView& batch) {
  std::vector<std::pair<std::string, bool>> found;
  for (int64_t i = 0; i < batch.rows(); ++i) {
    found.emplace_back(batch.column("piece").Bytes(i), batch.column("last").AsInt64(i) != 0);
  }
  return found;
}

class PiecesTest : public ::testing::Test {
 protected:
  bool Write(const std::vector<std::string>& pieces, bool last) {
    const std::vector<std::string_view> views(pieces.begin(), pieces.end());
    return writer_.WritePieces(batch::PiecesImage(views, last), Soon());
  }
  std::vector<std::pair<std::string, bool>> Read() {
    return PiecesIn(batch::BatchView(reader_.Next(Soon()).image));
  }

  RingEnds ends_ = CreateRing(1 << 16);
  RingWriter writer_{std::move(ends_.writer)};
  RingReader reader_{std::move(ends_.reader)};
};

TEST_F(PiecesTest, AreReadAsAnyOtherBatch) {
  const std::vector<std::string> nine = {
      "one", "", std::string(1000, 'x'), "four", "5", "6", "7", "", "nine"};
  ASSERT_TRUE(Write(nine, true));
  ASSERT_TRUE(Write({"begin of a"}, false));
  ASSERT_TRUE(Write({"", "long one"}, false));
  ASSERT_TRUE(Write({""}, true));
  const auto found = Read();
  ASSERT_EQ(found.size(), nine.size());
  for (size_t i = 0; i < nine.size(); ++i) EXPECT_EQ(found[i], std::pair(nine[i], true)) << i;
  using Pieces = std::vector<std::pair<std::string, bool>>;
  EXPECT_EQ(Read(), (Pieces{{"begin of a", false}}));
  EXPECT_EQ(Read(), (Pieces{{"", true}, {"long one", false}}));
  EXPECT_EQ(Read(), (Pieces{{"", true}}));
}

TEST_F(PiecesTest, LargerThanTheRingAreRefused) {
  EXPECT_EQ(CodeOf([&] { Write({std::string(1 << 16, 'x')}, true); }),
            ErrorCode::kResourceExhausted);
  EXPECT_TRUE(Write({"still"}, true)) << "the ring must be as before";
}

TEST_F(PiecesTest, ComeToNothingOnceTheReaderWantsNoMore) {
  reader_.Close();
  EXPECT_FALSE(Write({"late"}, true));
}

}  // namespace
}  // namespace hearth::ring
