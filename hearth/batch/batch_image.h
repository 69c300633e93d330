// The table in front of a batch's buffers. docs/format_batch.md describes it with worked bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace hearth::batch {

inline constexpr uint32_t kImageMagic = 0x54414248;  // "HBAT"
inline constexpr uint32_t kImageVersion = 1;
// Every buffer starts at a multiple of this, and so should the image.
inline constexpr uint64_t kImageAlignment = 64;
// Nesting and size limits that keep a damaged table from costing more than its own bytes.
inline constexpr int kMaxNesting = 16;
inline constexpr uint32_t kMaxNodes = 1 << 16;

// All numbers are little-endian; all offsets count from the image's first byte.
struct ImageHeader {
  uint32_t magic;
  uint32_t version;
  uint64_t bytes;  // of the whole image
  uint64_t rows;
  uint32_t columns;  // top-level nodes
  uint32_t nodes;    // all nodes; they follow this header in pre-order
};

// A column or a child of one. An offset of 0 means that there is no such buffer.
struct ImageNode {
  uint32_t type;      // ColumnType
  uint32_t children;  // direct children
  uint64_t length;    // values
  uint64_t list_size;
  uint32_t name_offset;
  uint32_t name_bytes;
  uint64_t validity;
  uint64_t offsets;
  uint64_t data;
  uint64_t data_bytes;
};

// Which file a column's values lie in; behind it the file's absolute path. Its offset is `offsets`.
struct ImageFile {
  uint64_t bytes;
  int64_t modified_ns;
  uint64_t inode;
  uint64_t path_bytes;
};

// A value in that file; nothing of one that is null.
struct FilePlace {
  uint64_t begin;
  uint64_t bytes;
};

static_assert(sizeof(ImageFile) == 32 && std::is_trivially_copyable_v<ImageFile>);
static_assert(sizeof(FilePlace) == 16 && std::is_trivially_copyable_v<FilePlace>);
static_assert(sizeof(ImageHeader) == 32 && std::is_trivially_copyable_v<ImageHeader>);
static_assert(sizeof(ImageNode) == 64 && std::is_trivially_copyable_v<ImageNode>);

inline constexpr uint64_t AlignImage(uint64_t bytes) {
  return (bytes + kImageAlignment - 1) / kImageAlignment * kImageAlignment;
}

}  // namespace hearth::batch
