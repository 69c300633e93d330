#include "hearth/caffe/data/database/lmdb_file.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/storage/uri.h"

namespace hearth::caffe {
namespace {

constexpr size_t kCachedPages = 64;

// A plain path may contain a colon, so only "://" marks a URI.
bool IsRemote(std::string_view path) {
  return path.find("://") != std::string_view::npos && !storage::IsLocal(path);
}

}  // namespace

LmdbFile::LmdbFile(const std::string& path) : name_(path) {
  if (!IsRemote(path)) {
    mapped_ = formats::MappedFile::Open(path);
    size_ = mapped_->size();
    return;
  }
  storage::FileSystem& files = storage::For(path);
  tree_ = files.Open(path);
  values_ = files.Open(path);
  size_ = tree_->size();
  Require(size_ > 0, ErrorCode::kDataLoss, "the LMDB {} is empty", path);
}

LmdbFile::LmdbFile(std::string name, std::unique_ptr<storage::InputFile> tree,
                   std::unique_ptr<storage::InputFile> values)
    : name_(std::move(name)),
      tree_(std::move(tree)),
      values_(std::move(values)),
      size_(tree_->size()) {}

const std::byte* LmdbFile::Page(uint64_t number, size_t size) {
  auto found = pages_.find(number);
  if (found == pages_.end() || found->second.bytes.size() != size) {
    std::string bytes(size, '\0');
    Fetch(tree_.get(), number * size, &bytes);
    if (found == pages_.end() && pages_.size() >= kCachedPages) DropOldest();
    found = pages_.insert_or_assign(number, Slot{std::move(bytes)}).first;
  }
  found->second.used = ++clock_;
  return reinterpret_cast<const std::byte*>(found->second.bytes.data());
}

const std::byte* LmdbFile::Value(uint64_t offset, size_t size) {
  if (mapped_ != nullptr) return mapped_->data() + offset;
  value_.resize(size);
  Fetch(values_.get(), offset, &value_);
  return reinterpret_cast<const std::byte*>(value_.data());
}

void LmdbFile::Fetch(storage::InputFile* file, uint64_t offset, std::string* bytes) {
  const size_t read = file->ReadAt(offset, bytes->data(), bytes->size());
  Require(read == bytes->size(), ErrorCode::kDataLoss,
          "the LMDB {} ends at byte {}, in the middle of a page; do not write to a database while "
          "it is read",
          name_, offset + read);
  fetched_ += read;
}

void LmdbFile::DropOldest() {
  pages_.erase(std::min_element(pages_.begin(), pages_.end(), [](const auto& a, const auto& b) {
    return a.second.used < b.second.used;
  }));
}

}  // namespace hearth::caffe
