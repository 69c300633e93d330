#include "hearth/batch/batch_image.h"

#include <fstream>
#include <map>
#include <sstream>

#include "hearth/batch/batch_builder.h"
#include "hearth/batch/batch_view.h"
#include "hearth/batch/testing/batch_testing.h"

namespace hearth::batch {
namespace {

// Reads the lines "OFFSET  16 bytes" of the document's example.
std::map<size_t, std::vector<int>> DocumentedBytes() {
  std::ifstream file(HEARTH_TEST_DATA "/../../docs/format_batch.md");
  EXPECT_TRUE(file.is_open());
  std::map<size_t, std::vector<int>> lines;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line == "```") {
      inside = !inside;
    } else if (inside) {
      std::istringstream words(line);
      size_t offset;
      words >> std::hex >> offset;
      for (int byte; words >> std::hex >> byte;) lines[offset].push_back(byte);
    }
  }
  return lines;
}

TEST(BatchImage, EqualsTheDocumentedBytes) {
  BatchBuilder rows;
  rows.AddInt32("label", {7, 0}, {false, true}).AddFloatList("x", {{1, -2}, {}});
  TestImage image(rows);
  auto lines = DocumentedBytes();
  EXPECT_GT(lines.size(), 10u);
  ASSERT_EQ(image.bytes().size(), 512u);
  for (size_t offset = 0; offset < 512; offset += 16) {
    std::vector<int> line;
    for (size_t i = 0; i < 16; ++i) line.push_back(static_cast<int>(image.bytes()[offset + i]));
    const std::vector<int> zeros(16, 0);
    EXPECT_EQ(line, lines.contains(offset) ? lines[offset] : zeros) << offset;
  }
}

TEST(BatchImage, ReadsBackFromTheDocumentedBytes) {
  std::vector<uint64_t> words(64);
  const auto bytes = std::as_writable_bytes(std::span(words));
  for (const auto& [offset, line] : DocumentedBytes()) {
    for (size_t i = 0; i < line.size(); ++i) bytes[offset + i] = static_cast<std::byte>(line[i]);
  }
  const BatchView batch(bytes);
  std::vector<float> scratch;
  EXPECT_EQ(batch.column("label").AsInt64(0), 7);
  EXPECT_TRUE(batch.column("label").IsNull(1));
  EXPECT_EQ(batch.column("x").FloatList(0, &scratch)[1], -2);
  EXPECT_EQ(batch.column("x").ListLength(1), 0);
}

}  // namespace
}  // namespace hearth::batch
