// The bytes of an LMDB's data file: mapped where it lies on this machine; of another file system
// the pages that are asked for, of which some are kept. One thread. The file must not change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "hearth/formats/mapped_file.h"
#include "hearth/storage/file_system.h"

namespace hearth::caffe {

class LmdbFile {
 public:
  // A path, or a URI that hearth::storage knows. Throws as that does; kDataLoss for an empty file.
  explicit LmdbFile(const std::string& path);
  // A file as those elsewhere are read.
  LmdbFile(std::string name, std::unique_ptr<storage::InputFile> tree,
           std::unique_ptr<storage::InputFile> values);

  const std::string& name() const { return name_; }
  uint64_t size() const { return size_; }
  // The whole file where it is mapped, else null.
  const std::byte* mapped() const { return mapped_ == nullptr ? nullptr : mapped_->data(); }
  // Page `number` of pages of `size` bytes, of a file that is not mapped. It lies in the file, and
  // stays until 32 others were asked for.
  const std::byte* Page(uint64_t number, size_t size);
  // `size` bytes from `offset` on, which lie in the file. They stay until the next call.
  const std::byte* Value(uint64_t offset, size_t size);
  // Bytes of pages and values that were fetched.
  uint64_t fetched() const { return fetched_; }

 private:
  struct Slot {
    std::string bytes;
    uint64_t used = 0;
  };

  void Fetch(storage::InputFile* file, uint64_t offset, std::string* bytes);
  void DropOldest();

  const std::string name_;
  std::shared_ptr<const formats::MappedFile> mapped_;
  // Two, as each reads ahead where it is read in order, and values lie in another order than pages.
  std::unique_ptr<storage::InputFile> tree_, values_;
  uint64_t size_ = 0;
  std::unordered_map<uint64_t, Slot> pages_;
  std::string value_;
  uint64_t clock_ = 0, fetched_ = 0;
};

}  // namespace hearth::caffe
