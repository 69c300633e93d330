// Arrow's "binary view" and "string view" arrays, whose values may be in any buffer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/batch/arrow_c_abi.h"

namespace hearth::batch {

// Location of a value: up to kInlineBytes are stored in the view, longer values at an offset in a
// buffer.
struct ByteView {
  static constexpr int32_t kInlineBytes = 12;

  int32_t bytes;
  int32_t prefix;  // the first four bytes
  int32_t buffer;
  int32_t offset;
};
static_assert(sizeof(ByteView) == 16);

// Returns the value at `index`, relative to the array's first value; empty for null. The array's
// buffers are validity, views, value buffers and the sizes of the value buffers.
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

// Builds an array of views without copying the values. Not thread-safe.
class ByteViews {
 public:
  // Appends a view of `value`. Throws kResourceExhausted for a value of 2 GiB or more, naming
  // `column`.
  void Append(std::string_view value, std::string_view column) {
    Require(value.size() <= INT32_MAX, ErrorCode::kResourceExhausted,
            "a value of column '{}' has {} bytes; the limit is 2 GiB", column, value.size());
    ByteView& view = views_.emplace_back(ByteView{static_cast<int32_t>(value.size()), 0, 0, 0});
    if (view.bytes <= ByteView::kInlineBytes) {
      if (!value.empty()) std::memcpy(&view.prefix, value.data(), value.size());
      return;
    }
    std::memcpy(&view.prefix, value.data(), sizeof(view.prefix));
    StartBufferFor(value);
    view.buffer = static_cast<int32_t>(starts_.size()) - 1;
    view.offset = static_cast<int32_t>(value.data() - starts_.back());
    sizes_.back() = std::max(sizes_.back(), int64_t{view.offset} + view.bytes);
  }

  // Appends all of the array's buffers except validity. The buffers are valid until this object
  // changes.
  void AddBuffers(std::vector<const void*>* buffers) const {
    static constexpr int64_t kNoSize = 0;
    buffers->push_back(views_.data());
    buffers->insert(buffers->end(), starts_.begin(), starts_.end());
    buffers->push_back(sizes_.empty() ? &kNoSize : sizes_.data());
  }

 private:
  // Starts another buffer if the value is before the start of the last one, or ends 2 GiB or more
  // after that start.
  void StartBufferFor(std::string_view value) {
    const auto at = reinterpret_cast<uintptr_t>(value.data());
    const auto begin = starts_.empty() ? 0 : reinterpret_cast<uintptr_t>(starts_.back());
    if (!starts_.empty() && at >= begin && at - begin + value.size() <= INT32_MAX) return;
    starts_.push_back(value.data());
    sizes_.push_back(0);
  }

  std::vector<ByteView> views_;
  // Start and size of each value buffer.
  std::vector<const char*> starts_;
  std::vector<int64_t> sizes_;
};

}  // namespace hearth::batch
