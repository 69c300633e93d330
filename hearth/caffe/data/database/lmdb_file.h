#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "hearth/formats/mapped_file.h"
#include "hearth/storage/file_system.h"

namespace hearth::caffe {

// The bytes of an LMDB's data file. A local file is memory-mapped; a remote one is fetched by
// pages, some of which are cached. Must be used by one thread. The file must not change.
class LmdbFile {
 public:
  // `path` is a local path, or a URI that hearth::storage supports. Throws like storage, and
  // kDataLoss for an empty file.
  explicit LmdbFile(const std::string& path);
  // Fetches the file by pages, even if it is local. `tree` and `values` read the same file.
  LmdbFile(std::string name, std::unique_ptr<storage::InputFile> tree,
           std::unique_ptr<storage::InputFile> values);

  const std::string& name() const { return name_; }
  uint64_t size() const { return size_; }
  // The whole file if it is mapped, else null.
  const std::byte* mapped() const { return mapped_ == nullptr ? nullptr : mapped_->data(); }
  // Page `number`, if the file consists of pages of `size` bytes. Only for a file that is not
  // mapped, and only for pages inside it. The page stays valid until 32 other pages were requested.
  const std::byte* Page(uint64_t number, size_t size);
  // `size` bytes at `offset`. The range must be inside the file. Valid until the next call.
  const std::byte* Value(uint64_t offset, size_t size);
  // Bytes of pages and values fetched so far.
  uint64_t fetched() const { return fetched_; }

 private:
  // A fetched page, and when it was last used.
  struct Slot {
    std::string bytes;
    uint64_t used = 0;
  };

  void Fetch(storage::InputFile* file, uint64_t offset, std::string* bytes);
  void DropOldest();

  const std::string name_;
  std::shared_ptr<const formats::MappedFile> mapped_;
  // Two readers of the same file, one for pages of the tree and one for values. Each reads ahead
  // sequentially, but the values are not in the order of the pages that refer to them.
  std::unique_ptr<storage::InputFile> tree_, values_;
  uint64_t size_ = 0;
  std::unordered_map<uint64_t, Slot> pages_;
  std::string value_;
  uint64_t clock_ = 0, fetched_ = 0;
};

}  // namespace hearth::caffe
