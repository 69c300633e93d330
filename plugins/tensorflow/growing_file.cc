#include "plugins/tensorflow/growing_file.h"

#include <utility>

namespace hearth::tensorflow {
namespace {

constexpr size_t kMostUnflushed = 16 << 20;

}  // namespace

GrowingFile::GrowingFile(std::string uri, bool keep)
    : uri_(std::move(uri)), files_(storage::For(uri_)) {
  const auto there = keep ? files_.Stat(uri_) : std::nullopt;
  if (there) {
    size_ = static_cast<int64_t>(there->size);
  } else {
    hidden_ = files_.Create(uri_);
  }
}

void GrowingFile::Append(std::string_view bytes) {
  size_ += static_cast<int64_t>(bytes.size());
  if (hidden_) return hidden_->Append(bytes);
  unflushed_.append(bytes);
  if (unflushed_.size() > kMostUnflushed) Flush();
}

void GrowingFile::Flush() {
  if (hidden_) {
    hidden_->Commit();
    hidden_.reset();
  } else if (!unflushed_.empty()) {
    files_.Append(uri_, unflushed_);
    unflushed_.clear();
  }
}

}  // namespace hearth::tensorflow
