// Table at the start of a batch image. docs/format_batch.md describes it with example bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace hearth::batch {

inline constexpr uint32_t kImageMagic = 0x54414248;  // "HBAT"
inline constexpr uint32_t kImageVersion = 1;
// Alignment of every buffer in the image, and preferably of the image itself.
inline constexpr uint64_t kImageAlignment = 64;
// Limits of nesting and size, so that a damaged table cannot cause deep recursion or large
// allocations.
inline constexpr int kMaxNesting = 16;
inline constexpr uint32_t kMaxNodes = 1 << 16;

// The first bytes of an image. All numbers are little-endian; offsets count from the image's first
// byte.
struct ImageHeader {
  uint32_t magic;
  uint32_t version;
  uint64_t bytes;  // size of the whole image
  uint64_t rows;
  uint32_t columns;  // number of top-level nodes
  uint32_t nodes;    // number of all nodes, which follow this header in pre-order
};

// A column or a child of one. An absent buffer has offset 0.
struct ImageNode {
  uint32_t type;      // ColumnType
  uint32_t children;  // number of direct children
  uint64_t length;    // number of values
  uint64_t list_size;
  uint32_t name_offset;
  uint32_t name_bytes;
  uint64_t validity;
  uint64_t offsets;
  uint64_t data;
  uint64_t data_bytes;
};

// Identity of the file that contains a column's values. Stored at the offset `offsets` of the
// column's node, and followed by the file's absolute path.
struct ImageFile {
  uint64_t bytes;
  int64_t modified_ns;
  uint64_t inode;
  uint64_t path_bytes;
};

// Location of a value in a column's ImageFile; all zero for null.
struct FileLocation {
  uint64_t begin;
  uint64_t bytes;
};

static_assert(sizeof(ImageFile) == 32 && std::is_trivially_copyable_v<ImageFile>);
static_assert(sizeof(FileLocation) == 16 && std::is_trivially_copyable_v<FileLocation>);
static_assert(sizeof(ImageHeader) == 32 && std::is_trivially_copyable_v<ImageHeader>);
static_assert(sizeof(ImageNode) == 64 && std::is_trivially_copyable_v<ImageNode>);

inline constexpr uint64_t AlignImage(uint64_t bytes) {
  return (bytes + kImageAlignment - 1) / kImageAlignment * kImageAlignment;
}

}  // namespace hearth::batch
