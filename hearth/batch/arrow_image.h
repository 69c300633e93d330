// Copies rows of an Arrow batch into batch images. Binary views with large values are referenced,
// not copied, if this process maps one local file with all of them (mapped_file.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hearth/batch/arrow_c_abi.h"
#include "hearth/batch/batch_image.h"
#include "hearth/batch/column_type.h"
#include "hearth/formats/mapped_file.h"

namespace hearth::batch {

// An Arrow batch from which images are copied. References the two structs, which must outlive it.
// Row 0 is the first row of a sliced array, because images have no slice offsets. Const calls are
// thread-safe.
class ArrowImage {
 public:
  // Throws kInvalidArgument, naming column and type, for a type that images do not support.
  ArrowImage(const ArrowSchema& schema, const ArrowArray& array);

  int64_t rows() const { return array_.length; }

  // Size of the image of rows [begin, begin + count).
  size_t ImageBytes(int64_t begin, int64_t count) const;
  // Number of rows from `begin` on that fit into `max_bytes`; at least one.
  int64_t RowsWithin(int64_t begin, size_t max_bytes) const;
  // Writes exactly image.size() == ImageBytes(begin, count) bytes.
  void Write(int64_t begin, int64_t count, std::span<std::byte> image) const;

 private:
  // A column, or the child of one.
  struct Node {
    std::string name;
    ArrowType type;
    const ArrowArray* array;
    uint32_t children;
    std::shared_ptr<const formats::MappedFile> file = nullptr;  // file with all its values, or null
  };
  // A node's part of one image: the physical values [begin, begin + entry.length).
  struct NodeSlice {
    const Node* node;
    int64_t begin;
    ImageNode entry;
  };
  // Layout of one image: all slices, and its size.
  struct Plan {
    std::vector<NodeSlice> slices;
    uint64_t bytes;
  };

  void AddNode(const ArrowSchema& schema, const ArrowArray& array, int depth);
  Plan MakePlan(int64_t begin, int64_t count) const;
  size_t PlanNode(size_t node, int64_t begin, int64_t count, Plan* plan) const;
  static void WriteSlice(const NodeSlice& slice, std::byte* image);
  static void WriteLocations(const NodeSlice& slice, std::byte* image);

  const ArrowArray& array_;
  uint32_t columns_ = 0;
  uint64_t name_bytes_ = 0;
  std::vector<Node> nodes_;  // pre-order
};

}  // namespace hearth::batch
