#include "hearth/batch/arrow_image.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/batch/byte_views.h"

namespace hearth::batch {
namespace {

using formats::MappedFile;

// Describes a type for error messages: frequent unsupported types by name, others by their Arrow
// format.
std::string DescribeFormat(std::string_view format) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"n", "null"},
      {"e", "float16"},
      {"d:", "decimal"},
      {"td", "date"},
      {"ts", "timestamp"},
      {"tt", "time"},
      {"tD", "duration"},
      {"ti", "interval"},
      {"w:", "fixed-size binary"},
      {"+m", "map"},
      {"+u", "union"},
      {"+v", "list view"},
      {"+r", "run-end encoded"},
  };
  for (const auto& [prefix, name] : kNames) {
    if (format.starts_with(prefix)) return fmt::format("{} ('{}')", name, format);
  }
  return fmt::format("'{}'", format);
}

int64_t OffsetAt(const ArrowArray& array, int64_t width, int64_t index) {
  const void* offsets = array.buffers[1];
  // Arrow allows an array without values to omit its offsets.
  if (offsets == nullptr) return 0;
  return width == 8 ? static_cast<const int64_t*>(offsets)[index]
                    : static_cast<const int32_t*>(offsets)[index];
}

template <typename Offset>
void CopyOffsets(const void* from, int64_t begin, int64_t count, std::byte* to) {
  auto* out = reinterpret_cast<Offset*>(to);
  if (from == nullptr) {
    // `count` is 0, because only an array of length 0 may omit its offsets.
    out[0] = 0;
    return;
  }
  const Offset* in = static_cast<const Offset*>(from) + begin;
  const Offset base = in[0];
  // Subtracts `base`, because an image's offsets start at 0 even if the array is a slice.
  for (int64_t i = 0; i <= count; ++i) out[i] = in[i] - base;
}

// Copies bits [begin, begin + count) of the input to bits [0, count) of the output. The bits after
// them are undefined in both.
void CopyBits(const void* from, int64_t begin, int64_t count, std::byte* to) {
  const auto* in = static_cast<const uint8_t*>(from) + begin / 8;
  auto* out = reinterpret_cast<uint8_t*>(to);
  const int shift = static_cast<int>(begin % 8);
  const int64_t bytes = (count + 7) / 8;
  if (shift == 0) {
    std::memcpy(out, in, bytes);
    return;
  }
  const int64_t last = (shift + count - 1) / 8;  // bytes after `last` must not be read
  for (int64_t i = 0; i < bytes; ++i) {
    const int high = i + 1 <= last ? in[i + 1] << (8 - shift) : 0;
    out[i] = static_cast<uint8_t>(in[i] >> shift | high);
  }
}

int64_t ViewedTotal(const ArrowArray& array, int64_t begin, int64_t count) {
  int64_t total = 0;
  for (int64_t i = begin; i < begin + count; ++i) {
    total += static_cast<int64_t>(ViewedBytes(array, i).size());
  }
  return total;
}

// Copies the values of binary views, which may be in several buffers, into one buffer.
void CopyViewed(const ArrowArray& array, int64_t begin, int64_t count, std::byte* offsets,
                std::byte* data) {
  auto* ends = reinterpret_cast<int32_t*>(offsets);
  int32_t end = *ends = 0;
  for (int64_t i = begin; i < begin + count; ++i) {
    const std::string_view value = ViewedBytes(array, i);
    if (!value.empty()) std::memcpy(data + end, value.data(), value.size());
    *++ends = end += static_cast<int32_t>(value.size());
  }
}

// Below this size, copying a value takes no longer than reading it in the file, so it is copied.
constexpr int64_t kLargeBytes = 16 << 10;

// Returns the local file that contains all of the array's values; null if there is none or the
// values are small. Examines the whole array, so that the result does not depend on how rows are
// split into images.
std::shared_ptr<const MappedFile> FileOf(const ArrowArray& array) {
  int64_t values = 0, total = 0;
  for (int64_t i = array.offset; i < array.offset + array.length; ++i) {
    const auto bytes = static_cast<int64_t>(ViewedBytes(array, i).size());
    values += bytes > 0 ? 1 : 0;
    total += bytes;
  }
  if (values == 0 || total / values < kLargeBytes) return nullptr;
  // Looks up the mapping of the first value only; the other values must be in the same one.
  std::shared_ptr<const MappedFile> file;
  for (int64_t i = array.offset; i < array.offset + array.length; ++i) {
    const std::string_view value = ViewedBytes(array, i);
    if (value.empty() || (file != nullptr && file->Has(value))) continue;
    if (file != nullptr) return nullptr;
    file = MappedFile::Around(value);
    if (file == nullptr || !file->is_local()) return nullptr;
  }
  return file;
}

// Reserves `bytes` at `*end` and returns their offset. Keeps `*end` aligned.
uint64_t Reserve(uint64_t bytes, uint64_t* end) {
  const uint64_t offset = *end;
  *end = AlignImage(offset + bytes);
  return offset;
}

// Data bytes of `count` values; `bytes` is the total size of strings and binaries.
uint64_t DataBytes(ColumnType type, int64_t count, int64_t bytes) {
  if (type == ColumnType::kFileBinary) return static_cast<uint64_t>(count) * sizeof(FileLocation);
  if (IsBytes(type)) return static_cast<uint64_t>(bytes);
  if (type == ColumnType::kBool) return static_cast<uint64_t>((count + 7) / 8);
  return static_cast<uint64_t>(count * NumberWidth(type));
}

// Some writers send a validity buffer even if no value is null; the image then omits it.
bool HasValidity(const ArrowArray& array) {
  return array.null_count != 0 && array.n_buffers > 0 && array.buffers[0] != nullptr;
}

}  // namespace

ArrowImage::ArrowImage(const ArrowSchema& schema, const ArrowArray& array) : array_(array) {
  Require(std::string_view(schema.format) == "+s" && schema.n_children == array.n_children,
          ErrorCode::kInvalidArgument, "a record batch is needed, got an Arrow array of type {}",
          DescribeFormat(schema.format));
  columns_ = static_cast<uint32_t>(schema.n_children);
  for (int64_t i = 0; i < schema.n_children; ++i) {
    AddNode(*schema.children[i], *array.children[i], 0);
  }
  Require(nodes_.size() <= kMaxNodes, ErrorCode::kInvalidArgument,
          "a batch has {} columns, including nested ones; the limit is {}", nodes_.size(),
          kMaxNodes);
}

void ArrowImage::AddNode(const ArrowSchema& schema, const ArrowArray& array, int depth) {
  const std::string name = schema.name == nullptr ? "" : schema.name;
  ArrowType type;
  Require(schema.dictionary == nullptr, ErrorCode::kInvalidArgument,
          "column '{}' is dictionary-encoded, which is not supported; cast it to its value type",
          name);
  Require(ParseArrowFormat(schema.format, &type), ErrorCode::kInvalidArgument,
          "column '{}' has Arrow type {}, which is not supported; drop it or cast it to numbers, "
          "strings, binaries, or lists of numbers",
          name, DescribeFormat(schema.format));
  Require(depth < kMaxNesting && schema.n_children == array.n_children &&
              (!IsList(type.type) || array.n_children == 1),
          ErrorCode::kInvalidArgument, "column '{}' is malformed, or nested deeper than {} levels",
          name, kMaxNesting);
  name_bytes_ += name.size();
  Node node{name, type, &array, static_cast<uint32_t>(array.n_children)};
  if (type.views && type.type == ColumnType::kBinary) node.file = FileOf(array);
  // From here on the node has the layout of kFileBinary: the file's identity replaces the offsets,
  // and locations replace the bytes.
  if (node.file != nullptr) node.type.type = ColumnType::kFileBinary;
  nodes_.push_back(std::move(node));
  for (int64_t i = 0; i < array.n_children; ++i) {
    AddNode(*schema.children[i], *array.children[i], depth + 1);
  }
}

// Determines all offsets before any byte is written, so that the caller can reserve exactly the
// image's size in a ring.
ArrowImage::Plan ArrowImage::MakePlan(int64_t begin, int64_t count) const {
  const uint64_t table = sizeof(ImageHeader) + nodes_.size() * sizeof(ImageNode);
  Plan plan{{}, AlignImage(table + name_bytes_)};
  plan.slices.reserve(nodes_.size());
  for (size_t node = 0; node < nodes_.size();) {
    node = PlanNode(node, array_.offset + begin, count, &plan);
  }
  auto name_offset = static_cast<uint32_t>(table);
  for (NodeSlice& slice : plan.slices) {
    slice.entry.name_offset = name_offset;
    slice.entry.name_bytes = static_cast<uint32_t>(slice.node->name.size());
    name_offset += slice.entry.name_bytes;
  }
  return plan;
}

// `begin` does not include the array's own offset. Returns the index of the node after this one's
// descendants.
size_t ArrowImage::PlanNode(size_t index, int64_t begin, int64_t count, Plan* plan) const {
  const Node& node = nodes_[index];
  const ColumnType type = node.type.type;
  begin += node.array->offset;
  ImageNode entry = {};
  entry.type = static_cast<uint32_t>(type);
  entry.children = node.children;
  entry.length = static_cast<uint64_t>(count);
  entry.list_size = static_cast<uint64_t>(node.type.list_size);
  if (HasValidity(*node.array)) entry.validity = Reserve((count + 7) / 8, &plan->bytes);
  int64_t child_begin = begin;
  int64_t child_count = count;
  if (node.file != nullptr) {
    entry.offsets = Reserve(sizeof(ImageFile) + node.file->path().size(), &plan->bytes);
  } else if (const int64_t width = OffsetWidth(type); width != 0) {
    entry.offsets = Reserve((count + 1) * width, &plan->bytes);
    if (node.type.views) {
      child_count = ViewedTotal(*node.array, begin, count);
    } else {
      child_begin = OffsetAt(*node.array, width, begin);
      // The values of rows [begin, begin + count) are contiguous, so the child's slice follows from
      // two offsets. For strings `child_count` is a number of bytes.
      child_count = OffsetAt(*node.array, width, begin + count) - child_begin;
    }
  } else if (type == ColumnType::kFixedSizeList) {
    child_begin *= node.type.list_size;
    child_count *= node.type.list_size;
  }
  entry.data_bytes = DataBytes(type, count, child_count);
  if (entry.data_bytes != 0) entry.data = Reserve(entry.data_bytes, &plan->bytes);
  plan->slices.push_back({&node, begin, entry});
  size_t next = index + 1;
  for (uint32_t i = 0; i < node.children; ++i)
    next = PlanNode(next, child_begin, child_count, plan);
  return next;
}

size_t ArrowImage::ImageBytes(int64_t begin, int64_t count) const {
  return MakePlan(begin, count).bytes;
}

// Bisects, because an image of more rows is never smaller: `fits` rows fit, `too_many` do not.
int64_t ArrowImage::RowsWithin(int64_t begin, size_t max_bytes) const {
  int64_t fits = 1;
  int64_t too_many = rows() - begin + 1;
  if (ImageBytes(begin, too_many - 1) <= max_bytes) return too_many - 1;
  while (too_many - fits > 1) {
    const int64_t middle = fits + (too_many - fits) / 2;
    (ImageBytes(begin, middle) <= max_bytes ? fits : too_many) = middle;
  }
  return fits;
}

void ArrowImage::Write(int64_t begin, int64_t count, std::span<std::byte> image) const {
  const Plan plan = MakePlan(begin, count);
  Require(image.size() == plan.bytes, ErrorCode::kInternal,
          "a batch image of {} bytes does not fit a buffer of {} bytes", plan.bytes, image.size());
  const ImageHeader header = {kImageMagic, kImageVersion,
                              plan.bytes,  static_cast<uint64_t>(count),
                              columns_,    static_cast<uint32_t>(nodes_.size())};
  std::memcpy(image.data(), &header, sizeof(header));
  std::byte* entry = image.data() + sizeof(header);
  for (const NodeSlice& slice : plan.slices) {
    std::memcpy(entry, &slice.entry, sizeof(ImageNode));
    entry += sizeof(ImageNode);
    const std::string& name = slice.node->name;
    std::memcpy(image.data() + slice.entry.name_offset, name.data(), name.size());
    WriteSlice(slice, image.data());
  }
}

void ArrowImage::WriteSlice(const NodeSlice& slice, std::byte* image) {
  const ArrowArray& array = *slice.node->array;
  const ColumnType type = slice.node->type.type;
  const ImageNode& entry = slice.entry;
  const auto count = static_cast<int64_t>(entry.length);
  if (entry.validity != 0) CopyBits(array.buffers[0], slice.begin, count, image + entry.validity);
  if (slice.node->file != nullptr) {
    WriteLocations(slice, image);
    return;
  }
  if (slice.node->type.views) {
    // Rows are split to fit into a ring, which is always smaller than 2 GiB.
    Require(entry.data_bytes <= INT32_MAX, ErrorCode::kResourceExhausted,
            "column '{}' has {} bytes in {} rows; write fewer rows at once", slice.node->name,
            entry.data_bytes, count);
    CopyViewed(array, slice.begin, count, image + entry.offsets, image + entry.data);
    return;
  }
  const int64_t width = OffsetWidth(type);
  if (width == 4) CopyOffsets<int32_t>(array.buffers[1], slice.begin, count, image + entry.offsets);
  if (width == 8) CopyOffsets<int64_t>(array.buffers[1], slice.begin, count, image + entry.offsets);
  if (entry.data == 0) return;
  if (type == ColumnType::kBool) {
    CopyBits(array.buffers[1], slice.begin, count, image + entry.data);
    return;
  }
  // Arrow's buffers of strings are validity, offsets, bytes; those of numbers are validity, values.
  const bool bytes = IsBytes(type);
  const int64_t first =
      bytes ? OffsetAt(array, width, slice.begin) : slice.begin * NumberWidth(type);
  const auto* data = static_cast<const std::byte*>(array.buffers[bytes ? 2 : 1]);
  std::memcpy(image + entry.data, data + first, entry.data_bytes);
}

void ArrowImage::WriteLocations(const NodeSlice& slice, std::byte* image) {
  const MappedFile& mapped = *slice.node->file;
  const formats::FileIdentity& identity = mapped.identity();
  const std::string& path = mapped.path();
  const ImageFile file = {identity.bytes, identity.modified_ns, identity.inode, path.size()};
  std::byte* to = image + slice.entry.offsets;
  std::memcpy(to, &file, sizeof(file));
  std::memcpy(to + sizeof(file), path.data(), path.size());
  auto* locations = reinterpret_cast<FileLocation*>(image + slice.entry.data);
  for (uint64_t i = 0; i < slice.entry.length; ++i) {
    const auto value = ViewedBytes(*slice.node->array, slice.begin + static_cast<int64_t>(i));
    locations[i] = {value.empty() ? 0 : mapped.OffsetOf(value), value.size()};
  }
}

}  // namespace hearth::batch
