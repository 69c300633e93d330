#include "hearth/formats/sequence_records.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "hearth/base/error.h"

namespace hearth::formats {
namespace {

using namespace std::string_view_literals;

// Version 6; the classes of key and value, each behind its length; compressed neither by record nor
// by block; so many pairs of metadata.
constexpr std::string_view kHeader =
    "SEQ\x06"
    "\x22org.apache.hadoop.io.BytesWritable"
    "\x22org.apache.hadoop.io.BytesWritable"
    "\0\0"
    "\0\0\0\0"sv;
// In the place of a record's length; the file's own mark follows.
constexpr std::string_view kEscape = "\xff\xff\xff\xff"sv;
constexpr size_t kMarkBytes = 16;
constexpr uint64_t kFirst = kHeader.size() + kMarkBytes;
// Before a record: its length and its key's. Before each of both: the number of its bytes.
constexpr uint64_t kLengths = 8, kCount = 4;
constexpr uint64_t kMostBytes = std::numeric_limits<int32_t>::max();  // Java's lengths have a sign
constexpr size_t kInlineBytes = 12;  // of a value that stands in its view

}  // namespace

size_t SequenceRecords::HeadBytes() { return kFirst; }

bool SequenceRecords::Reads(std::string_view head) {
  return head.starts_with(kHeader) && head.size() >= kFirst;
}

SequenceRecords::SequenceRecords(std::shared_ptr<const MappedFile> file, uint64_t low,
                                 uint64_t high)
    : file_(std::move(file)) {
  Require(low <= high, ErrorCode::kInvalidArgument, "{} is to be read from byte {} to byte {}",
          file_->path(), low, high);
  Require(Reads(bytes()), ErrorCode::kInvalidArgument,
          "{} is no SequenceFile of BytesWritables without compression", file_->path());
  mark_.append(kEscape).append(bytes().substr(kHeader.size(), kMarkBytes));
  at_ = MarkBehind(low);
  end_ = MarkBehind(high);
}

std::string_view SequenceRecords::bytes() const {
  return {reinterpret_cast<const char*>(file_->data()), file_->size()};
}

uint64_t SequenceRecords::MarkBehind(uint64_t at) const {
  if (at <= kFirst) return kFirst;
  if (at >= file_->size()) return file_->size();
  const std::string_view rest = bytes().substr(at);
  // std::string_view::find() stops at each byte that begins a mark, of which white pixels have
  // many.
  const void* found = ::memmem(rest.data(), rest.size(), mark_.data(), mark_.size());
  return found == nullptr
             ? file_->size()
             : at + static_cast<uint64_t>(static_cast<const char*>(found) - rest.data());
}

std::vector<SequenceRecords::Record> SequenceRecords::Next(size_t most_records, size_t most_bytes) {
  Require(most_records > 0, ErrorCode::kInvalidArgument, "no records of {} are asked for",
          file_->path());
  std::vector<Record> records;
  most_bytes = std::min<size_t>(most_bytes, kMostBytes);
  while (at_ < end_ && records.size() < most_records) {
    if (bytes().substr(at_).starts_with(mark_)) {
      at_ += mark_.size();
      continue;
    }
    const Record record = Look();
    const uint64_t behind = file_->PlaceOf(record.value) + record.value.size();
    if (!records.empty() && behind - file_->PlaceOf(records[0].value) > most_bytes) return records;
    records.push_back(record);
    at_ = behind;
  }
  Require(at_ <= end_, ErrorCode::kInvalidArgument,
          "{} is damaged at byte {} of {}: a record has the file's mark in it; write it again",
          file_->path(), end_, file_->size());
  return records;
}

SequenceRecords::Record SequenceRecords::Look() const {
  const uint64_t room = file_->size() - at_;
  if (room < kLengths) ThrowDamaged(at_);
  const uint64_t size = NumberAt(at_), key_size = NumberAt(at_ + kCount);
  if (size > kMostBytes || size > room - kLengths || size < 2 * kCount || key_size < kCount ||
      key_size > size - kCount) {
    ThrowDamaged(at_);
  }
  const uint64_t key = at_ + kLengths, value = key + key_size;
  const uint64_t value_size = size - key_size;
  if (NumberAt(key) != key_size - kCount || NumberAt(value) != value_size - kCount) {
    ThrowDamaged(at_);
  }
  return {bytes().substr(key + kCount, key_size - kCount),
          bytes().substr(value + kCount, value_size - kCount)};
}

uint32_t SequenceRecords::NumberAt(uint64_t at) const {
  uint32_t number = 0;
  for (const char byte : bytes().substr(at, kCount)) {
    number = number << 8 | static_cast<unsigned char>(byte);
  }
  return number;
}

void SequenceRecords::ThrowDamaged(uint64_t at) const {
  Throw(ErrorCode::kInvalidArgument,
        "{} is damaged at byte {} of {}: there is no whole record; write it again", file_->path(),
        at, file_->size());
}

std::string BinaryViews(const std::vector<SequenceRecords::Record>& records) {
  std::string views(16 * records.size(), '\0');
  for (size_t i = 0; i < records.size(); ++i) {
    const std::string_view value = records[i].value;
    char* view = views.data() + 16 * i;
    const auto size = static_cast<uint32_t>(value.size());
    std::memcpy(view, &size, 4);
    if (size <= kInlineBytes) {
      std::memcpy(view + 4, value.data(), size);
      continue;
    }
    const auto distance = value.data() - records[0].value.data();
    Require(distance >= 0 && static_cast<uint64_t>(distance) <= kMostBytes, ErrorCode::kInternal,
            "values that are {} bytes apart in one batch", distance);
    const auto place = static_cast<uint32_t>(distance);
    std::memcpy(view + 4, value.data(), 4);
    std::memcpy(view + 12, &place, 4);  // of the first and only buffer
  }
  return views;
}

}  // namespace hearth::formats
