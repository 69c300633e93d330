#include "hearth/formats/tfrecord.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/formats/crc32c.h"

namespace hearth::formats {
namespace {

constexpr size_t kHeaderBytes = 12;  // the data's length (u64) and the length's checksum
constexpr size_t kFooterBytes = 4;   // the data's checksum
// Step in which the buffer grows: even for a length with a correct checksum, memory is allocated
// only as bytes arrive. Two steps fit in the L2 cache, from which the records are then parsed.
constexpr size_t kStepBytes = size_t{256} << 10;

template <typename T>
T Load(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

bool IsHeader(const char* bytes) { return Load<uint32_t>(bytes + 8) == MaskedCrc32c({bytes, 8}); }

// A source that first returns the bytes that were used to detect the format, then the rest.
class Rejoined : public ByteSource {
 public:
  Rejoined(std::string head, std::unique_ptr<ByteSource> rest)
      : head_(std::move(head)), rest_(std::move(rest)) {}

  size_t Read(char* data, size_t size) override {
    if (used_ == head_.size()) return rest_->Read(data, size);
    const size_t count = std::min(size, head_.size() - used_);
    std::memcpy(data, head_.data() + used_, count);
    used_ += count;
    return count;
  }

 private:
  std::string head_;
  size_t used_ = 0;
  std::unique_ptr<ByteSource> rest_;
};

}  // namespace

TfRecordReader::TfRecordReader(std::unique_ptr<ByteSource> source, std::string name,
                               uint64_t largest_record_bytes)
    : source_(std::move(source)),
      name_(std::move(name)),
      largest_record_bytes_(largest_record_bytes) {
  // False for an empty or very short file, which Next() reports.
  const bool has_header = Fill(kHeaderBytes);
  const std::string_view head(buffer_.data(), end_);
  // An uncompressed record of a certain length starts with gzip's magic, too. It is a record if the
  // checksum of its length is right.
  if (head.starts_with("\x1f\x8b") && !(has_header && IsHeader(head.data()))) {
    source_ =
        OpenGzipSource(std::make_unique<Rejoined>(std::string(head), std::move(source_)), name_);
    begin_ = end_ = 0;
    packed_ = true;
  }
}

bool TfRecordReader::Fill(size_t count) {
  // The last record is no longer needed: Next() invalidates it.
  if (begin_ > 0 && end_ - begin_ < count) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
  }
  while (end_ - begin_ < count) {
    if (buffer_.size() - end_ < kStepBytes) {
      buffer_.resize(std::max(std::min(buffer_.size() * 2, count + kStepBytes), 2 * kStepBytes));
    }
    const size_t got = source_->Read(buffer_.data() + end_, buffer_.size() - end_);
    if (got == 0) return false;
    end_ += got;
  }
  return true;
}

// Record: length (u64), masked CRC-32C of the length, data, masked CRC-32C of the data.
// Little-endian.
std::optional<std::string_view> TfRecordReader::Next() {
  if (!Fill(kHeaderBytes)) {
    if (begin_ == end_) return std::nullopt;
    ThrowDamaged("is truncated");
  }
  const char* header = buffer_.data() + begin_;
  // Checks the checksum of the length first, because after a wrong length all later bytes would be
  // misread.
  if (!IsHeader(header)) ThrowDamaged("has a wrong length checksum");
  const auto length = Load<uint64_t>(header);
  CheckLength(length);
  const size_t entry = kHeaderBytes + static_cast<size_t>(length) + kFooterBytes;
  if (!Fill(entry)) ThrowDamaged("is truncated");
  const std::string_view data(buffer_.data() + begin_ + kHeaderBytes, static_cast<size_t>(length));
  if (Load<uint32_t>(data.data() + data.size()) != MaskedCrc32c(data)) {
    ThrowDamaged("has a wrong checksum");
  }
  begin_ += entry;
  offset_ += entry;
  ++records_;
  return data;
}

void TfRecordReader::CheckLength(uint64_t length) const {
  Require(length <= largest_record_bytes_, ErrorCode::kInvalidArgument,
          "record {} of {} has {} bytes, at byte {}{}, which exceeds the limit of {}"
          ": the file is damaged, or HEARTH_MAX_RECORD_MB is too small",
          records_, name_, length, offset_, packed_ ? " of the uncompressed data" : "",
          largest_record_bytes_);
}

void TfRecordReader::ThrowDamaged(std::string_view what) const {
  Throw(ErrorCode::kDataLoss,
        "record {} of {} {}, at byte {}{}: the file is damaged, or not a TFRecord file", records_,
        name_, what, offset_, packed_ ? " of the uncompressed data" : "");
}

void TfRecordWriter::Write(std::string_view record) {
  char header[kHeaderBytes];
  const uint64_t length = record.size();
  std::memcpy(header, &length, sizeof(length));
  const uint32_t length_crc = MaskedCrc32c({header, sizeof(length)});
  std::memcpy(header + sizeof(length), &length_crc, sizeof(length_crc));
  const uint32_t crc = MaskedCrc32c(record);
  sink_->Write({header, sizeof(header)});
  sink_->Write(record);
  sink_->Write({reinterpret_cast<const char*>(&crc), sizeof(crc)});
}

}  // namespace hearth::formats
