// Batch image of byte strings, written without an intermediate copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace hearth::batch {

// An image with the columns `piece` (binary) and `last` (bool), one row per chunk. References the
// chunks, which must outlive it.
class ChunksImage {
 public:
  // `last`: whether the final chunk completes its value; each of the other chunks completes a
  // value. Throws kInvalidArgument if the chunks have 2 GiB or more in total.
  ChunksImage(std::span<const std::string_view> chunks, bool last);

  int64_t rows() const { return static_cast<int64_t>(chunks_.size()); }
  size_t bytes() const { return bytes_; }
  // Writes exactly image.size() == bytes() bytes.
  void Write(std::span<std::byte> image) const;

 private:
  std::span<const std::string_view> chunks_;
  bool last_;
  size_t data_bytes_ = 0;
  size_t offsets_at_ = 0, data_at_ = 0, flags_at_ = 0;
  size_t bytes_ = 0;
};

}  // namespace hearth::batch
