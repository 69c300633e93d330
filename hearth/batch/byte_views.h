// Arrow's arrays of type "binary view" and "string view", whose values lie wherever they are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/batch/arrow_c_abi.h"

namespace hearth::batch {

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

// Makes such an array of values that stay where they lie. Not thread-safe.
class ByteViews {
 public:
  // Throws kResourceExhausted for a value of 2 GiB; `column` is for that message.
  void Append(std::string_view value, std::string_view column) {
    Require(value.size() <= INT32_MAX, ErrorCode::kResourceExhausted,
            "a value of column '{}' has {} bytes; fewer than 2 GiB are possible", column,
            value.size());
    ByteView& view = views_.emplace_back(ByteView{static_cast<int32_t>(value.size()), 0, 0, 0});
    if (view.bytes <= ByteView::kInlineBytes) {
      if (!value.empty()) std::memcpy(&view.prefix, value.data(), value.size());
      return;
    }
    std::memcpy(&view.prefix, value.data(), sizeof(view.prefix));
    Reach(value);
    view.buffer = static_cast<int32_t>(places_.size()) - 1;
    view.offset = static_cast<int32_t>(value.data() - places_.back());
    sizes_.back() = std::max(sizes_.back(), int64_t{view.offset} + view.bytes);
  }

  // Adds the array's buffers behind its validity; they last as long as these views stay as they
  // are.
  void AddBuffers(std::vector<const void*>* buffers) const {
    static constexpr int64_t kNoSize = 0;
    buffers->push_back(views_.data());
    buffers->insert(buffers->end(), places_.begin(), places_.end());
    buffers->push_back(sizes_.empty() ? &kNoSize : sizes_.data());
  }

 private:
  // Begins another buffer where the value lies before the last one, or too far behind its begin.
  void Reach(std::string_view value) {
    const auto at = reinterpret_cast<uintptr_t>(value.data());
    const auto begin = places_.empty() ? 0 : reinterpret_cast<uintptr_t>(places_.back());
    if (!places_.empty() && at >= begin && at - begin + value.size() <= INT32_MAX) return;
    places_.push_back(value.data());
    sizes_.push_back(0);
  }

  std::vector<ByteView> views_;
  // Where the values lie, and how many bytes from there on.
  std::vector<const char*> places_;
  std::vector<int64_t> sizes_;
};

}  // namespace hearth::batch
