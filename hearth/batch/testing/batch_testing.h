// Test helpers for batches.
#pragma once

#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "hearth/batch/arrow_image.h"
#include "hearth/batch/batch_builder.h"

namespace hearth::batch {

// Resident bytes of mapped file pages of this process.
inline int64_t ResidentFileBytes() {
  std::ifstream status("/proc/self/status");
  int64_t total = 0;
  for (std::string name; status >> name;) {
    int64_t kilobytes = 0;
    // Which counter applies depends on the file system of the temporary directory.
    if (name == "RssFile:" || name == "RssShmem:") status >> kilobytes;
    total += kilobytes << 10;
  }
  return total;
}

// A batch image on the heap, aligned, for tests that damage it.
class TestImage {
 public:
  explicit TestImage(BatchBuilder& rows) {
    ArrowSchema schema;
    ArrowArray array;
    rows.Export(&schema, &array);
    const ArrowImage image(schema, array);
    words_.resize(image.ImageBytes(0, image.rows()) / sizeof(uint64_t));
    image.Write(0, image.rows(), bytes());
  }
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(words_)); }

 private:
  std::vector<uint64_t> words_;
};

}  // namespace hearth::batch
