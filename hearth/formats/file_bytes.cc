#include "hearth/formats/file_bytes.h"

#include <algorithm>

#include "hearth/base/error.h"

namespace hearth::formats {
namespace {

// A request to a remote file costs milliseconds whatever its size, so requests are large. They do
// not extend far beyond the position passed to Expect(), so that few bytes are wasted.
constexpr size_t kWindow = size_t{256} << 10, kLeastWindow = size_t{4} << 10;

}  // namespace

size_t WindowedBytes::window() const { return kWindow; }

std::string_view WindowedBytes::At(uint64_t at, size_t count) {
  if (at < begin_ || at + count > begin_ + data_.size()) {
    // Keeps bytes that were already read, so that sequential reads fetch each byte once.
    const bool overlaps = begin_ <= at && at <= begin_ + data_.size();
    data_.erase(0, overlaps ? static_cast<size_t>(at - begin_) : data_.size());
    begin_ = at;
    const uint64_t from = at + data_.size();
    const uint64_t ahead = expected_ > from ? expected_ - from : 0;
    const uint64_t wanted =
        std::max<uint64_t>(at + count - from, std::clamp<uint64_t>(ahead, kLeastWindow, kWindow));
    data_ += read_(from, static_cast<size_t>(std::min(wanted, size_ - from)));
    Require(data_.size() >= count, ErrorCode::kInvalidArgument,
            "{} is damaged: it ends at byte {} of {}; write it again", name_, begin_ + data_.size(),
            size_);
  }
  return std::string_view(data_).substr(static_cast<size_t>(at - begin_), count);
}

}  // namespace hearth::formats
