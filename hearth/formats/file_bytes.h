// Random access to a file's bytes: mapped, or read in windows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "hearth/formats/mapped_file.h"

namespace hearth::formats {

// The bytes of one file. Not thread-safe.
class FileBytes {
 public:
  virtual ~FileBytes() = default;
  virtual uint64_t size() const = 0;
  // Number of bytes that a search should request from At() at a time.
  virtual size_t window() const = 0;
  // Returns all of the bytes [at, at + count), which must be inside the file. They are valid until
  // the next call; for a mapped file, as long as this object. Throws kInvalidArgument if the file
  // has become too short.
  virtual std::string_view At(uint64_t at, size_t count) = 0;
  // Hint that few bytes after `end` will be read.
  virtual void Expect(uint64_t end) = 0;
};

// A mapped file, all of which is one window.
class MappedBytes : public FileBytes {
 public:
  explicit MappedBytes(std::shared_ptr<const MappedFile> file) : file_(std::move(file)) {}

  uint64_t size() const override { return file_->size(); }
  size_t window() const override { return file_->size(); }
  std::string_view At(uint64_t at, size_t count) override {
    return {reinterpret_cast<const char*>(file_->data()) + at, count};
  }
  void Expect(uint64_t) override {}

 private:
  std::shared_ptr<const MappedFile> file_;
};

// A file read in windows. Uses memory for a window of 256 KiB, or for the largest range requested.
class WindowedBytes : public FileBytes {
 public:
  // Reads up to `count` bytes at a position; fewer only at the end of the file.
  using Read = std::function<std::string(uint64_t at, size_t count)>;

  // `name` is for error messages.
  WindowedBytes(std::string name, uint64_t size, Read read)
      : name_(std::move(name)), size_(size), read_(std::move(read)) {}

  uint64_t size() const override { return size_; }
  size_t window() const override;
  // Throws the errors of FileBytes::At() and of `read`.
  std::string_view At(uint64_t at, size_t count) override;
  void Expect(uint64_t end) override { expected_ = end; }

 private:
  std::string name_;
  uint64_t size_;
  Read read_;
  uint64_t expected_ = 0;
  uint64_t begin_ = 0;  // position of data_
  std::string data_;
};

}  // namespace hearth::formats
