#include "hearth/batch/chunks_image.h"

#include <cstring>
#include <limits>

#include "hearth/base/error.h"
#include "hearth/batch/batch_image.h"
#include "hearth/batch/column_type.h"

namespace hearth::batch {
namespace {

constexpr std::string_view kNames = "piecelast";
constexpr uint32_t kFirstNameBytes = 5;  // length of the first column's name
constexpr size_t kTableBytes = sizeof(ImageHeader) + 2 * sizeof(ImageNode);

}  // namespace

ChunksImage::ChunksImage(std::span<const std::string_view> chunks, bool last)
    : chunks_(chunks), last_(last) {
  for (const std::string_view chunk : chunks_) data_bytes_ += chunk.size();
  // Limited to 2 GiB, because a binary column has int32 offsets.
  Require(data_bytes_ <= std::numeric_limits<int32_t>::max(), ErrorCode::kInvalidArgument,
          "{} chunks of {} bytes in total are too large for one batch", chunks_.size(),
          data_bytes_);
  // The table and names, then three buffers: offsets, bytes of the chunks, one bit per chunk.
  offsets_at_ = AlignImage(kTableBytes + kNames.size());
  data_at_ = AlignImage(offsets_at_ + (chunks_.size() + 1) * sizeof(int32_t));
  flags_at_ = AlignImage(data_at_ + data_bytes_);
  bytes_ = AlignImage(flags_at_ + (chunks_.size() + 7) / 8);
}

void ChunksImage::Write(std::span<std::byte> image) const {
  Require(image.size() == bytes_, ErrorCode::kInternal,
          "a batch image of {} bytes does not fit a buffer of {} bytes", bytes_, image.size());
  const ImageHeader header = {kImageMagic, kImageVersion, bytes_, chunks_.size(), 2, 2};
  ImageNode nodes[2] = {};
  nodes[0].type = static_cast<uint32_t>(ColumnType::kBinary);
  nodes[1].type = static_cast<uint32_t>(ColumnType::kBool);
  nodes[0].length = nodes[1].length = chunks_.size();
  nodes[0].name_offset = kTableBytes;
  nodes[0].name_bytes = kFirstNameBytes;
  nodes[1].name_offset = kTableBytes + kFirstNameBytes;
  nodes[1].name_bytes = kNames.size() - kFirstNameBytes;
  nodes[0].offsets = offsets_at_;
  nodes[0].data = data_bytes_ > 0 ? data_at_ : 0;
  nodes[0].data_bytes = data_bytes_;
  nodes[1].data = flags_at_;
  nodes[1].data_bytes = (chunks_.size() + 7) / 8;
  std::memcpy(image.data(), &header, sizeof(header));
  std::memcpy(image.data() + sizeof(header), nodes, sizeof(nodes));
  std::memcpy(image.data() + kTableBytes, kNames.data(), kNames.size());

  auto* offsets = reinterpret_cast<int32_t*>(image.data() + offsets_at_);
  std::byte* const data = image.data() + data_at_;
  auto* flags = reinterpret_cast<uint8_t*>(image.data() + flags_at_);
  // Clears the bits: the loop below only sets bits, and the ring's memory contains bytes of earlier
  // entries.
  std::memset(flags, 0, nodes[1].data_bytes);
  int32_t end = 0;
  for (size_t i = 0; i < chunks_.size(); ++i) {
    offsets[i] = end;
    if (!chunks_[i].empty()) std::memcpy(data + end, chunks_[i].data(), chunks_[i].size());
    end += static_cast<int32_t>(chunks_[i].size());
    if (last_ || i + 1 < chunks_.size()) flags[i / 8] |= static_cast<uint8_t>(1 << i % 8);
  }
  offsets[chunks_.size()] = end;
}

}  // namespace hearth::batch
