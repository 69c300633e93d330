#include "hearth/batch/batch_view.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/batch/batch_image.h"

namespace hearth::batch {
namespace {

using formats::MappedFile;

// Limit of a count. An image in memory cannot contain more values, and smaller counts cannot
// overflow when multiplied.
constexpr uint64_t kMaxLength = uint64_t{1} << 48;

template <typename... Args>
void RequireSound(bool sound, fmt::format_string<Args...> format, Args&&... args) {
  if (!sound) {
    Throw(ErrorCode::kDataLoss,
          "a batch image is damaged: {}; the process that wrote it is faulty or runs another "
          "version of Hearth",
          fmt::format(format, std::forward<Args>(args)...));
  }
}

template <typename Offset>
void CheckOffsets(const void* buffer, uint64_t length, uint64_t limit, std::string_view name) {
  const auto* offsets = static_cast<const Offset*>(buffer);
  bool sound = offsets[0] >= 0 && static_cast<uint64_t>(offsets[length]) <= limit;
  // The loop has no early exit so that it is vectorised; valid images are the common case.
  for (uint64_t i = 0; i < length; ++i) sound &= offsets[i] <= offsets[i + 1];
  RequireSound(sound, "the offsets of column '{}' do not ascend from 0 to at most {}", name, limit);
}

// `limit` is the file's size. Values are below 2 GiB, because they are exported as Arrow views.
void CheckLocations(const FileLocation* locations, uint64_t length, uint64_t limit,
                    std::string_view name) {
  bool sound = true;
  for (uint64_t i = 0; i < length; ++i) {
    const auto [begin, bytes] = locations[i];
    sound &= begin <= limit && bytes <= limit - begin && bytes <= INT32_MAX;
  }
  RequireSound(sound, "values of column '{}' are outside its file of {} bytes", name, limit);
}

// Reader of an image: walks its nodes in pre-order and builds their views, checking each bound
// once. The image may come from another process through shared memory, or from a disk. Therefore
// every field is checked before use: an offset is compared with the image's size, and a count is
// bounded before it is multiplied.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> image) : image_(image) {
    RequireSound(reinterpret_cast<uintptr_t>(image.data()) % 8 == 0, "it is not 8-byte aligned");
    RequireSound(image.size() >= sizeof(header_), "{} bytes cannot hold a header", image.size());
    std::memcpy(&header_, image.data(), sizeof(header_));
    RequireSound(header_.magic == kImageMagic && header_.version == kImageVersion,
                 "it starts with the magic number {:#x} and version {}", header_.magic,
                 header_.version);
    RequireSound(header_.bytes == image.size(), "its header claims {} bytes, but it has {}",
                 header_.bytes, image.size());
    RequireSound(header_.nodes <= kMaxNodes && header_.columns <= header_.nodes &&
                     sizeof(header_) + header_.nodes * sizeof(ImageNode) <= image.size(),
                 "its table of {} nodes does not fit into {} bytes", header_.nodes, image.size());
    RequireSound(header_.rows <= kMaxLength, "its header claims {} rows", header_.rows);
  }

  int64_t rows() const { return static_cast<int64_t>(header_.rows); }
  uint64_t file_bytes() const { return file_bytes_; }
  std::vector<std::shared_ptr<const MappedFile>> TakeFiles() { return std::move(files_); }

  std::vector<ColumnView> ReadColumns() {
    std::vector<ColumnView> columns = ReadNodes(header_.columns, 0);
    for (const ColumnView& column : columns) {
      RequireSound(column.length() == rows(), "column '{}' has {} values for {} rows",
                   column.name(), column.length(), rows());
    }
    RequireSound(next_ == header_.nodes, "{} of its {} nodes belong to no column",
                 header_.nodes - next_, header_.nodes);
    return columns;
  }

 private:
  std::vector<ColumnView> ReadNodes(uint32_t count, int depth) {
    RequireSound(depth <= kMaxNesting, "columns are nested deeper than {} levels", kMaxNesting);
    RequireSound(count <= header_.nodes - next_, "its table ends too early");
    std::vector<ColumnView> views;
    views.reserve(count);
    for (uint32_t i = 0; i < count; ++i) views.push_back(ReadNode(depth));
    return views;
  }

  ColumnView ReadNode(int depth) {
    RequireSound(next_ < header_.nodes, "its table ends too early");
    ImageNode node;
    std::memcpy(&node, image_.data() + sizeof(header_) + next_ * sizeof(node), sizeof(node));
    ++next_;
    RequireSound(uint64_t{node.name_offset} + node.name_bytes <= image_.size(),
                 "a name is outside the image");
    const std::string_view name(reinterpret_cast<const char*>(image_.data()) + node.name_offset,
                                node.name_bytes);
    RequireSound(IsKnownColumnType(node.type), "column '{}' has type {}", name, node.type);
    // Checked before the code below multiplies these numbers.
    RequireSound(node.length <= kMaxLength && node.list_size <= kMaxLength,
                 "column '{}' has {} values of list size {}", name, node.length, node.list_size);
    const ArrowType type = {static_cast<ColumnType>(node.type),
                            static_cast<int64_t>(node.list_size)};
    const ColumnBuffers buffers = ReadBuffers(node, type, name);
    std::vector<ColumnView> children = ReadNodes(node.children, depth + 1);
    CheckChildren(node, type, name, buffers, children);
    return ColumnView(name, type, static_cast<int64_t>(node.length), buffers, std::move(children));
  }

  ColumnBuffers ReadBuffers(const ImageNode& node, const ArrowType& type, std::string_view name) {
    ColumnBuffers buffers;
    const uint64_t bit_bytes = (node.length + 7) / 8;
    if (node.validity != 0) buffers.validity = At(node.validity, bit_bytes, name);
    if (type.type == ColumnType::kFileBinary) {
      ReadFile(node, name, &buffers);
      return buffers;
    }
    if (const uint64_t width = OffsetWidth(type.type); width != 0) {
      RequireSound(node.offsets != 0, "column '{}' has no offsets", name);
      buffers.offsets = At(node.offsets, (node.length + 1) * width, name);
    }
    if (node.data != 0) buffers.data = At(node.data, node.data_bytes, name);
    RequireSound(node.data != 0 || node.data_bytes == 0, "column '{}' has no data", name);
    const uint64_t need = type.type == ColumnType::kBool
                              ? bit_bytes
                              : node.length * static_cast<uint64_t>(NumberWidth(type.type));
    RequireSound(node.data_bytes >= need, "column '{}' needs {} bytes, but has {}", name, need,
                 node.data_bytes);
    buffers.data_bytes = static_cast<int64_t>(node.data_bytes);
    return buffers;
  }

  // Validates all fields that describe the file before opening it.
  void ReadFile(const ImageNode& node, std::string_view name, ColumnBuffers* buffers) {
    RequireSound(node.offsets != 0 && (node.data != 0 || node.length == 0),
                 "column '{}' has no file or no locations", name);
    RequireSound(node.data_bytes / sizeof(FileLocation) >= node.length,
                 "column '{}' has {} bytes of locations for {} values", name, node.data_bytes,
                 node.length);
    ImageFile file;
    std::memcpy(&file, At(node.offsets, sizeof(file), name), sizeof(file));
    RequireSound(file.bytes > 0 && file.path_bytes <= image_.size(),
                 "the file of column '{}' has {} bytes and a path of {}", name, file.bytes,
                 file.path_bytes);
    const uint8_t* path = At(node.offsets, sizeof(file) + file.path_bytes, name) + sizeof(file);
    const std::string file_path(reinterpret_cast<const char*>(path), file.path_bytes);
    RequireSound(file_path.starts_with('/') && file_path.find('\0') == std::string::npos,
                 "the file of column '{}' has no absolute path", name);
    if (node.data != 0) {
      buffers->locations =
          reinterpret_cast<const FileLocation*>(At(node.data, node.data_bytes, name));
      CheckLocations(buffers->locations, node.length, file.bytes, name);
    }
    // The mapping is shared with other batches of the same file.
    files_.push_back(MappedFile::Find(file_path, {file.bytes, file.modified_ns, file.inode}));
    const MappedFile& mapped = *files_.back();
    mapped.CheckUnchanged();
    buffers->data = reinterpret_cast<const uint8_t*>(mapped.data());
    buffers->data_bytes = static_cast<int64_t>(mapped.size());
    for (uint64_t i = 0; i < node.length; ++i) file_bytes_ += buffers->locations[i].bytes;
  }

  void CheckChildren(const ImageNode& node, const ArrowType& type, std::string_view name,
                     const ColumnBuffers& buffers, const std::vector<ColumnView>& children) {
    const bool is_struct = type.type == ColumnType::kStruct;
    RequireSound(is_struct || children.size() == (IsList(type.type) ? 1u : 0u),
                 "column '{}' has {} children", name, children.size());
    for (const ColumnView& child : children) {
      const auto length = static_cast<uint64_t>(child.length());
      RequireSound(!is_struct || length >= node.length, "struct column '{}' is too short", name);
      // Compares by a division, because the product of these numbers may overflow.
      RequireSound(type.type != ColumnType::kFixedSizeList || node.length == 0 ||
                       node.list_size <= length / node.length,
                   "list column '{}' is too short", name);
    }
    // Checks offsets last, because for lists their limit is the child's length, which was not known
    // earlier.
    const uint64_t limit = IsList(type.type) ? children[0].length() : node.data_bytes;
    const int64_t width = OffsetWidth(type.type);
    if (width == 4) CheckOffsets<int32_t>(buffers.offsets, node.length, limit, name);
    if (width == 8) CheckOffsets<int64_t>(buffers.offsets, node.length, limit, name);
  }

  // The only conversion from an offset to a pointer.
  const uint8_t* At(uint64_t offset, uint64_t bytes, std::string_view name) const {
    RequireSound(
        offset % kImageAlignment == 0 && offset <= image_.size() && bytes <= image_.size() - offset,
        "a buffer of column '{}' ({} bytes at {}) is outside the image or not aligned", name, bytes,
        offset);
    return reinterpret_cast<const uint8_t*>(image_.data()) + offset;
  }

  std::span<const std::byte> image_;
  ImageHeader header_;
  uint32_t next_ = 0;
  std::vector<std::shared_ptr<const MappedFile>> files_;
  uint64_t file_bytes_ = 0;
};

// A copy of an image, and its view. aligned_alloc requires a size that is a multiple of the
// alignment. The view is declared after the bytes, so it is destroyed first.
struct OwnedImage {
  explicit OwnedImage(std::span<const std::byte> image)
      : bytes(
            static_cast<std::byte*>(std::aligned_alloc(kImageAlignment, AlignImage(image.size()))),
            std::free) {
    Require(bytes != nullptr, ErrorCode::kResourceExhausted,
            "not enough memory for a batch of {} bytes", image.size());
    std::memcpy(bytes.get(), image.data(), image.size());
    view = std::make_unique<BatchView>(std::span<const std::byte>(bytes.get(), image.size()));
  }
  std::unique_ptr<std::byte, void (*)(void*)> bytes;
  std::unique_ptr<BatchView> view;
};

}  // namespace

BatchView::BatchView(std::span<const std::byte> image) : image_(image) {
  Reader reader(image);
  rows_ = reader.rows();
  columns_ = reader.ReadColumns();
  files_ = reader.TakeFiles();
  file_bytes_ = reader.file_bytes();
}

const ColumnView* BatchView::FindColumn(std::string_view name) const {
  for (const ColumnView& column : columns_) {
    if (column.name() == name) return &column;
  }
  return nullptr;
}

const ColumnView& BatchView::column(std::string_view name) const {
  if (const ColumnView* found = FindColumn(name)) return *found;
  std::string names;
  for (const ColumnView& column : columns_) {
    names += (names.empty() ? "" : ", ") + std::string(column.name());
  }
  Throw(ErrorCode::kNotFound, "the rows have no column '{}'; their columns are: {}", name, names);
}

std::shared_ptr<const BatchView> CopyBatch(std::span<const std::byte> image) {
  auto owned = std::make_shared<OwnedImage>(image);
  // An aliasing pointer: it refers to the view and keeps the image alive.
  return {owned, owned->view.get()};
}

}  // namespace hearth::batch
