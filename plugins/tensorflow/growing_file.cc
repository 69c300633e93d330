#include "plugins/tensorflow/growing_file.h"

#include <utility>

#include "hearth/base/error.h"

namespace hearth::tensorflow {
namespace {

constexpr size_t kMaxUnflushed = 16 << 20;

}  // namespace

GrowingFile::GrowingFile(std::string uri, bool keep)
    : uri_(std::move(uri)), files_(storage::For(uri_)) {
  const auto there = keep ? files_.Stat(uri_) : std::nullopt;
  if (there) {
    size_ = static_cast<int64_t>(there->size);
    flushed_ = there->size;
  } else {
    hidden_ = files_.Create(uri_);
  }
}

void GrowingFile::Append(std::string_view bytes) {
  size_ += static_cast<int64_t>(bytes.size());
  if (hidden_) return hidden_->Append(bytes);
  unflushed_.append(bytes);
  if (unflushed_.size() > kMaxUnflushed) Flush();
}

void GrowingFile::Flush() {
  if (hidden_) {
    hidden_->Commit();
    hidden_.reset();
    flushed_ = static_cast<uint64_t>(size_);
    return;
  }
  if (tried_ > 0) Settle();
  if (unflushed_.empty()) return;
  tried_ = unflushed_.size();
  files_.Append(uri_, unflushed_);
  flushed_ += std::exchange(tried_, 0);
  unflushed_.clear();
}

void GrowingFile::Settle() {
  const auto there = files_.Stat(uri_);
  const uint64_t size = there ? there->size : 0;
  if (size == flushed_ + tried_) {
    flushed_ += tried_;
    unflushed_.erase(0, tried_);
  } else {
    Require(size == flushed_, ErrorCode::kDataLoss,
            "cannot append to {}: it has {} bytes, but {} were written; another program may also "
            "write to it, or an append was interrupted",
            uri_, size, flushed_);
  }
  tried_ = 0;
}

}  // namespace hearth::tensorflow
