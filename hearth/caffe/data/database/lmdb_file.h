#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "hearth/formats/mapped_file.h"
#include "hearth/storage/file_system.h"

namespace hearth::caffe {

// The bytes of an LMDB's data file: memory-mapped if it is local; otherwise fetched by pages, some
// of which are cached. One thread. The file must not change.
class LmdbFile {
 public:
  // A path, or a URI that hearth::storage supports. Throws like storage; kDataLoss for an empty
  // file.
  explicit LmdbFile(const std::string& path);
  // Reads a file by pages, like a remote one.
  LmdbFile(std::string name, std::unique_ptr<storage::InputFile> tree,
           std::unique_ptr<storage::InputFile> values);

  const std::string& name() const { return name_; }
  uint64_t size() const { return size_; }
  // The whole file if it is mapped, else null.
  const std::byte* mapped() const { return mapped_ == nullptr ? nullptr : mapped_->data(); }
  // Page `number` of pages of `size` bytes, of a file that is not mapped. It must be inside the
  // file, and is valid until 32 others were requested.
  const std::byte* Page(uint64_t number, size_t size);
  // `size` bytes from `offset` on, which must be inside the file. Valid until the next call.
  const std::byte* Value(uint64_t offset, size_t size);
  // Bytes of pages and values that were fetched.
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
  // Two readers, as each reads ahead sequentially, and values are in a different order than pages.
  std::unique_ptr<storage::InputFile> tree_, values_;
  uint64_t size_ = 0;
  std::unordered_map<uint64_t, Slot> pages_;
  std::string value_;
  uint64_t clock_ = 0, fetched_ = 0;
};

}  // namespace hearth::caffe
