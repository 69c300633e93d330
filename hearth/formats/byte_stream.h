// Sequential bytes of a file, of memory or of a gzip stream. Not thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace hearth::formats {

// Reads bytes in sequence.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Reads up to `size` bytes; returns 0 only at the end. Throws the matching error of errno, or
  // kDataLoss for a damaged stream.
  virtual size_t Read(char* data, size_t size) = 0;
};

// Writes bytes in sequence.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void Write(std::string_view bytes) = 0;
  // Flushes all bytes to the file. Must be the last call; without it the file is incomplete.
  virtual void Finish() = 0;
};

std::unique_ptr<ByteSource> OpenFileSource(const std::string& path);
// A source of these bytes, which must outlive it.
std::unique_ptr<ByteSource> OpenMemorySource(std::string_view bytes);
// Decompresses concatenated gzip members; `name` is for error messages.
std::unique_ptr<ByteSource> OpenGzipSource(std::unique_ptr<ByteSource> packed, std::string name);

// Creates or replaces the file.
std::unique_ptr<ByteSink> OpenFileSink(const std::string& path);
// Compresses all bytes into one gzip member. Finish() also finishes `packed`.
std::unique_ptr<ByteSink> OpenGzipSink(std::unique_ptr<ByteSink> packed);

}  // namespace hearth::formats
