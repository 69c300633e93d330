// A batch image of byte strings, gathered from where each of them lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace hearth::batch {

// Columns `piece` (binary) and `last` (bool). Borrows the pieces, which must outlive it.
class PiecesImage {
 public:
  // `last`: whether the last piece completes its value, which the others always do. Throws
  // kInvalidArgument for 2 GiB or more.
  PiecesImage(std::span<const std::string_view> pieces, bool last);

  int64_t rows() const { return static_cast<int64_t>(pieces_.size()); }
  size_t bytes() const { return bytes_; }
  // Writes exactly image.size() == bytes() bytes.
  void Write(std::span<std::byte> image) const;

 private:
  std::span<const std::string_view> pieces_;
  bool last_;
  size_t data_bytes_ = 0;
  size_t offsets_at_ = 0, data_at_ = 0, flags_at_ = 0;
  size_t bytes_ = 0;
};

}  // namespace hearth::batch
