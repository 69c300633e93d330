// Bytes of a file by their position: mapped, or read in windows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "hearth/formats/mapped_file.h"

namespace hearth::formats {

// One thread.
class FileBytes {
 public:
  virtual ~FileBytes() = default;
  virtual uint64_t size() const = 0;
  // How many bytes a search should look at in one go.
  virtual size_t window() const = 0;
  // All of the bytes [at, at + count), which must lie in the file; valid until the next call, of a
  // mapped file as long as this. Throws kInvalidArgument where the file is shorter by now.
  virtual std::string_view At(uint64_t at, size_t count) = 0;
  // Little behind `end` will be asked for.
  virtual void Expect(uint64_t end) = 0;
};

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

// Memory: a window of 256 KiB, or the largest stretch of bytes that was asked for.
class WindowedBytes : public FileBytes {
 public:
  // Reads up to so many bytes from a position on; fewer only where the file ends.
  using Read = std::function<std::string(uint64_t at, size_t count)>;

  // `name` is for messages.
  WindowedBytes(std::string name, uint64_t size, Read read)
      : name_(std::move(name)), size_(size), read_(std::move(read)) {}

  uint64_t size() const override { return size_; }
  size_t window() const override;
  // Throws what `read` throws, too.
  std::string_view At(uint64_t at, size_t count) override;
  void Expect(uint64_t end) override { expected_ = end; }

 private:
  std::string name_;
  uint64_t size_;
  Read read_;
  uint64_t expected_ = 0;
  uint64_t begin_ = 0;  // of the bytes that are here
  std::string data_;
};

}  // namespace hearth::formats
