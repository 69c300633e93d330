#include "hearth/formats/byte_stream.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/fd.h"
#include "hearth/base/write_all.h"

namespace hearth::formats {
namespace {

constexpr size_t kBlockBytes = size_t{256} << 10;
// zlib's window size, plus 16 to select a gzip header.
constexpr int kGzipWindow = 15 + 16;
// Maximum input per call, because zlib counts the bytes of one call in 32 bits.
constexpr size_t kMostAtOnce = size_t{1} << 30;

class FileSource : public ByteSource {
 public:
  explicit FileSource(std::string path)
      : path_(std::move(path)), fd_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (!fd_.valid()) ThrowErrno(errno, fmt::format("cannot open {}", path_));
  }

  size_t Read(char* data, size_t size) override {
    for (;;) {
      const ssize_t got = ::read(fd_.get(), data, size);
      if (got >= 0) return static_cast<size_t>(got);
      if (errno != EINTR) ThrowErrno(errno, fmt::format("cannot read {}", path_));
    }
  }

 private:
  std::string path_;
  Fd fd_;
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}

  size_t Read(char* data, size_t size) override {
    const size_t count = std::min(size, bytes_.size());
    std::memcpy(data, bytes_.data(), count);
    bytes_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view bytes_;
};

class GzipSource : public ByteSource {
 public:
  GzipSource(std::unique_ptr<ByteSource> packed, std::string name)
      : packed_(std::move(packed)), name_(std::move(name)), input_(kBlockBytes) {
    Require(inflateInit2(&stream_, kGzipWindow) == Z_OK, ErrorCode::kResourceExhausted,
            "zlib has not enough memory to decompress {}", name_);
  }
  ~GzipSource() override { inflateEnd(&stream_); }

  size_t Read(char* data, size_t size) override {
    stream_.next_out = reinterpret_cast<Bytef*>(data);
    stream_.avail_out = static_cast<uInt>(std::min(size, kMostAtOnce));
    // Continues until at least one byte was decompressed, because a return of 0 would mean the end.
    const uInt room = stream_.avail_out;
    while (stream_.avail_out == room && Fill()) Inflate();
    return room - stream_.avail_out;
  }

 private:
  // Returns whether compressed input is left.
  bool Fill() {
    if (stream_.avail_in > 0) return true;
    const size_t got = packed_->Read(input_.data(), input_.size());
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(got);
    // The compressed bytes may end only after a complete member.
    Require(got > 0 || between_members_, ErrorCode::kDataLoss,
            "{} is truncated: its gzip stream has no end", name_);
    return got > 0;
  }

  void Inflate() {
    between_members_ = false;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    Require(status == Z_OK || status == Z_STREAM_END, ErrorCode::kDataLoss,
            "{} is damaged: its gzip stream cannot be decompressed ({})", name_,
            stream_.msg == nullptr ? "unknown reason" : stream_.msg);
    if (status == Z_STREAM_END) {
      between_members_ = true;
      // Resets only zlib's state and keeps the remaining input, because a file of a parallel
      // compressor has several gzip members.
      inflateReset(&stream_);
    }
  }

  std::unique_ptr<ByteSource> packed_;
  std::string name_;
  std::vector<char> input_;
  z_stream stream_ = {};
  bool between_members_ = false;
};

class FileSink : public ByteSink {
 public:
  explicit FileSink(std::string path)
      : path_(std::move(path)),
        fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (!fd_.valid()) ThrowErrno(errno, fmt::format("cannot create {}", path_));
  }

  void Write(std::string_view bytes) override {
    // Combines small records into writes of 256 KiB.
    buffer_.append(bytes);
    if (buffer_.size() >= kBlockBytes) Flush();
  }
  void Finish() override {
    Flush();
    if (::fsync(fd_.get()) != 0) ThrowErrno(errno, fmt::format("cannot write {}", path_));
    fd_.Reset();
  }

 private:
  void Flush() {
    WriteAll(fd_.get(), buffer_, path_);
    buffer_.clear();
  }

  std::string path_;
  Fd fd_;
  std::string buffer_;
};

class GzipSink : public ByteSink {
 public:
  explicit GzipSink(std::unique_ptr<ByteSink> packed)
      : packed_(std::move(packed)), output_(kBlockBytes) {
    Require(deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8,
                         Z_DEFAULT_STRATEGY) == Z_OK,
            ErrorCode::kResourceExhausted, "zlib has not enough memory to compress a file");
  }
  ~GzipSink() override { deflateEnd(&stream_); }

  void Write(std::string_view bytes) override {
    for (; bytes.size() > kMostAtOnce; bytes.remove_prefix(kMostAtOnce)) {
      Deflate(bytes.substr(0, kMostAtOnce), Z_NO_FLUSH);
    }
    Deflate(bytes, Z_NO_FLUSH);
  }
  void Finish() override {
    Deflate({}, Z_FINISH);
    packed_->Finish();
  }

 private:
  void Deflate(std::string_view bytes, int flush) {
    // zlib does not change its input.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    // Repeats until zlib leaves space in the output buffer; until then it may have more to write.
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(output_.data());
      stream_.avail_out = static_cast<uInt>(output_.size());
      deflate(&stream_, flush);
      packed_->Write({output_.data(), output_.size() - stream_.avail_out});
    } while (stream_.avail_out == 0);
  }

  std::unique_ptr<ByteSink> packed_;
  std::vector<char> output_;
  z_stream stream_ = {};
};

}  // namespace

std::unique_ptr<ByteSource> OpenFileSource(const std::string& path) {
  return std::make_unique<FileSource>(path);
}

std::unique_ptr<ByteSource> OpenMemorySource(std::string_view bytes) {
  return std::make_unique<MemorySource>(bytes);
}

std::unique_ptr<ByteSource> OpenGzipSource(std::unique_ptr<ByteSource> packed, std::string name) {
  return std::make_unique<GzipSource>(std::move(packed), std::move(name));
}

std::unique_ptr<ByteSink> OpenFileSink(const std::string& path) {
  return std::make_unique<FileSink>(path);
}

std::unique_ptr<ByteSink> OpenGzipSink(std::unique_ptr<ByteSink> packed) {
  return std::make_unique<GzipSink>(std::move(packed));
}

}  // namespace hearth::formats
