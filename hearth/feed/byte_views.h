// Arrow's arrays of type "binary view" and "string view", whose values lie wherever they are.
#pragma once

#include <cstdint>
#include <string_view>

#include "hearth/feed/arrow_c_abi.h"

namespace hearth::feed {

// Where a value is: up to kInlineBytes lie behind its length, others at an offset in a buffer.
struct ByteView {
  static constexpr int32_t kInlineBytes = 12;

  int32_t bytes;
  int32_t prefix;  // the first four bytes
  int32_t buffer;
  int32_t offset;
};
static_assert(sizeof(ByteView) == 16);

// The value at `index`, which counts from the array's own first one; of a null none. The buffers
// are the validity, the views, those of the values, and their sizes.
inline std::string_view ViewedBytes(const ArrowArray& array, int64_t index) {
  const auto* validity = static_cast<const uint8_t*>(array.buffers[0]);
  if (validity != nullptr && (validity[index / 8] >> index % 8 & 1) == 0) return {};
  const ByteView& view = static_cast<const ByteView*>(array.buffers[1])[index];
  const char* const at =
      view.bytes <= ByteView::kInlineBytes
          ? reinterpret_cast<const char*>(&view.prefix)
          : static_cast<const char*>(array.buffers[2 + view.buffer]) + view.offset;
  return {at, static_cast<size_t>(view.bytes)};
}

}  // namespace hearth::feed
