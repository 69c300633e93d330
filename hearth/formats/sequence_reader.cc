#include "hearth/formats/sequence_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "hearth/base/error.h"

namespace hearth::formats {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kMagic = "SEQ"sv;
constexpr char kVersion = 6;
constexpr std::string_view kBytesWritable = "org.apache.hadoop.io.BytesWritable"sv;
constexpr uint64_t kMaxHeaderBytes = uint64_t{1} << 20;
// Escape in place of a record length, followed by the file's sync marker.
constexpr std::string_view kEscape = "\xff\xff\xff\xff"sv;
constexpr size_t kMarkBytes = 16;
// Size of a record's two lengths (of the record and of its key), and of the number that precedes
// the bytes of each key and value.
constexpr uint64_t kLengths = 8, kCount = 4;
constexpr uint64_t kMaxBytes = std::numeric_limits<int32_t>::max();  // Java's lengths are signed
constexpr size_t kInlineBytes = 12;  // largest value stored inside its view
constexpr size_t kMaxVIntBytes = 9;

uint32_t Number(std::string_view bytes) {
  uint32_t number = 0;
  for (const char byte : bytes.substr(0, kCount)) {
    number = number << 8 | static_cast<unsigned char>(byte);
  }
  return number;
}

// Decodes Hadoop's variable-length integer of one to nine bytes and advances `at`; nullopt if
// `bytes` end first.
std::optional<int64_t> VInt(std::string_view bytes, size_t* at) {
  if (*at >= bytes.size()) return std::nullopt;
  const auto byte = static_cast<unsigned char>(bytes[*at]);
  const int first = byte < 128 ? byte : byte - 256;
  if (first >= -112) {
    ++*at;
    return first;
  }
  const bool negative = first < -120;
  const auto size = static_cast<size_t>((negative ? -120 : -112) - first);
  if (bytes.size() - *at - 1 < size) return std::nullopt;
  uint64_t number = 0;
  for (const char next : bytes.substr(*at + 1, size)) {
    number = number << 8 | static_cast<unsigned char>(next);
  }
  *at += 1 + size;
  return static_cast<int64_t>(negative ? ~number : number);
}

// Finds a sync marker. Uses memmem(), because std::string_view::find() stops at each occurrence of
// the marker's first byte, which may be frequent (white pixels).
std::optional<size_t> Find(std::string_view bytes, std::string_view mark) {
  const void* found = ::memmem(bytes.data(), bytes.size(), mark.data(), mark.size());
  if (found == nullptr) return std::nullopt;
  return static_cast<size_t>(static_cast<const char*>(found) - bytes.data());
}

// Appends an Arrow view: the size, then either up to 12 bytes of the value, or its first four
// bytes, the buffer and the offset.
void AppendView(std::string* views, std::string_view value, uint64_t offset) {
  char view[16] = {};
  const auto size = static_cast<uint32_t>(value.size());
  std::memcpy(view, &size, 4);
  if (size <= kInlineBytes) {
    std::memcpy(view + 4, value.data(), size);
  } else {
    const auto position = static_cast<uint32_t>(offset);
    std::memcpy(view + 4, value.data(), 4);
    std::memcpy(view + 12, &position, 4);  // the only buffer has index 0
  }
  views->append(view, sizeof view);
}

}  // namespace

SequenceReader::SequenceReader(std::unique_ptr<FileBytes> file, std::string name,
                               const FindUnpack& find)
    : file_(std::move(file)), name_(std::move(name)) {
  ReadHeader(find);
  at_ = first_;
}

void SequenceReader::Map(std::shared_ptr<const MappedFile> file) {
  Require(file->size() == file_->size(), ErrorCode::kInvalidArgument,
          "{} has {} bytes instead of {}: it was modified", name_, file->size(), file_->size());
  file_ = std::make_unique<MappedBytes>(std::move(file));
  mapped_ = true;
}

// Header: "SEQ", version, classes of keys and values, whether compressed, whether in blocks, codec
// if compressed, metadata as pairs of texts, sync marker. A VInt with its length precedes each
// text.
void SequenceReader::ReadHeader(const FindUnpack& find) {
  const uint64_t size = std::min(file_->size(), kMaxHeaderBytes);
  const auto take = [&](uint64_t count) {
    if (count > size - at_) ThrowDamaged("its header is truncated", at_);
    at_ += count;
    return std::string(file_->At(at_ - count, count));
  };
  const auto take_text = [&] {
    const std::string_view bytes = file_->At(at_, std::min<uint64_t>(kMaxVIntBytes, size - at_));
    size_t offset = 0;
    const uint64_t length = Length(VInt(bytes, &offset).value_or(-1), at_);
    at_ += offset;
    return take(length);
  };
  Require(size > kMagic.size() && take(kMagic.size()) == kMagic, ErrorCode::kInvalidArgument,
          "{} is not a SequenceFile", name_);
  const char version = take(1)[0];
  Require(version == kVersion, ErrorCode::kInvalidArgument,
          "{} is a SequenceFile of version {}; only version {} can be read", name_,
          static_cast<int>(version), static_cast<int>(kVersion));
  for (int i = 0; i < 2; ++i) {
    const std::string type = take_text();
    Require(
        type == kBytesWritable, ErrorCode::kInvalidArgument,
        "{} has keys or values of class {}; a SequenceFile of images must have BytesWritable for "
        "both, as Binary2Sequence and LMDB2Sequence write them",
        name_, type);
  }
  const bool packed = take(1)[0] != 0;
  in_blocks_ = take(1)[0] != 0;
  if (packed) {
    const std::string codec = take_text();
    unpack_ = find(codec);
    Require(unpack_ != nullptr, ErrorCode::kInvalidArgument,
            "{} is compressed by {}, which cannot be read here", name_, codec);
  }
  Require(packed || !in_blocks_, ErrorCode::kInvalidArgument,
          "{} is damaged: its header has uncompressed blocks; write it again", name_);
  const uint64_t pairs = Number(take(kCount));
  for (uint64_t i = 0; i < 2 * pairs; ++i) take_text();  // the writer's metadata
  // The sync marker: random bytes that the writer chose for this file and repeats between records.
  mark_.append(kEscape).append(take(kMarkBytes));
  first_ = at_;
}

void SequenceReader::Begin(uint64_t begin, uint64_t end, uint64_t wanted) {
  Require(begin <= end, ErrorCode::kInvalidArgument, "cannot read {} from byte {} to byte {}",
          name_, begin, end);
  end_ = std::max(end, first_ + 1);  // a marker right after the header belongs to the first range
  pending_.reset();
  rows_left_ = 0;
  if (begin == 0) {
    at_ = first_;
  } else if (begin = std::max(begin, first_ + 1); begin != ended_) {
    at_ = FindMark(begin, end_);
    if (at_ == file_->size()) end_ = 0;  // the next range cannot continue from here
  }
  ended_ = 0;
  file_->Expect(std::max(end_, wanted));
}

// Returns the start of the first marker that starts in [begin, end), or the file's end.
uint64_t SequenceReader::FindMark(uint64_t begin, uint64_t end) {
  // A marker belongs to the range in which it starts; its last bytes may be after the range.
  const uint64_t last = std::min(end - 1 + mark_.size(), file_->size());
  file_->Expect(last);
  for (uint64_t at = begin; at + mark_.size() <= last;) {
    const size_t count = std::min<uint64_t>(std::max(file_->window(), mark_.size()), last - at);
    if (const auto found = Find(file_->At(at, count), mark_)) return at + *found;
    // Windows overlap, so that a marker that crosses from one into the next is found.
    at += count - (mark_.size() - 1);
  }
  return file_->size();
}

bool SequenceReader::AtContent() {
  while (at_ < file_->size()) {
    const uint64_t left = file_->size() - at_;
    if (left < kEscape.size() || file_->At(at_, kEscape.size()) != kEscape) {
      if (in_blocks_) ThrowDamaged("a block does not start with a sync marker", at_);
      return true;
    }
    // As in Hadoop, a range ends only at a marker: records after `end_` still belong to this range
    // if no marker precedes them, because the next range starts at its first marker.
    if (at_ >= end_) break;
    if (left < mark_.size() || file_->At(at_, mark_.size()) != mark_) {
      ThrowDamaged("a sync marker differs from the header's", at_);
    }
    at_ += mark_.size();
    if (in_blocks_ && at_ < file_->size()) return true;
  }
  ended_ = end_;
  return false;
}

std::optional<SequenceReader::Record> SequenceReader::Next() {
  while (rows_left_ == 0) {
    if (!AtContent()) return std::nullopt;
    if (!in_blocks_) return ReadRecord();
    ReadBlock();
  }
  return NextOfBlock();
}

// A record: its length (u32), the length of its key (u32), key and value. Big-endian, as in Java.
SequenceReader::Record SequenceReader::ReadRecord() {
  const uint64_t left = file_->size() - at_, begin = at_;
  if (left < kLengths) ThrowDamaged("it ends inside a record", begin);
  const std::string_view lengths = file_->At(begin, kLengths);
  const uint64_t size = Number(lengths), key_size = Number(lengths.substr(kCount));
  if (size > kMaxBytes || key_size < kCount || key_size > size) {
    ThrowDamaged(fmt::format("a record of {} bytes claims a key of {} bytes", size, key_size),
                 begin);
  }
  if (size > left - kLengths) ThrowDamaged("it ends inside a record", begin);
  at_ = begin + kLengths + size;
  const std::string_view all = AtWithoutMark(begin, kLengths + size, "a record", begin);
  Record record{Payload(all.substr(kLengths, key_size), begin),
                all.substr(kLengths + key_size, size - key_size)};
  // Only values are compressed; record compression does not change keys.
  if (packed()) record.value = value_ = Unpacked(record.value, begin);
  record.value = Payload(record.value, begin);
  return record;
}

std::string_view SequenceReader::AtWithoutMark(uint64_t at, uint64_t size, const char* what,
                                               uint64_t begin) {
  const bool crosses = at + size > end_;
  const uint64_t more =
      crosses ? std::min<uint64_t>(mark_.size() - 1, file_->size() - at - size) : 0;
  const std::string_view all = file_->At(at, size + more);
  if (crosses && Find(all.substr(at < end_ ? end_ - at : 0), mark_)) {
    ThrowDamaged(fmt::format("{} contains the file's sync marker", what), begin);
  }
  return all.substr(0, size);
}

void SequenceReader::ReadBlock() {
  block_at_ = at_;
  size_t parts = 0;
  rows_left_ = PassBlock([&](std::string_view packed) {
    offsets_[parts] = 0;
    block_[parts++] = Unpacked(packed, block_at_);
  });
}

// Reads a block: the number of records, then the keys' sizes, the keys, the values' sizes and the
// values. Each of these parts is compressed and preceded by its compressed length. Numbers are
// VInts.
uint64_t SequenceReader::PassBlock(const std::function<void(std::string_view packed)>& part) {
  const uint64_t begin = at_;
  const auto number = [&] {
    const std::string_view bytes =
        file_->At(at_, std::min<uint64_t>(kMaxVIntBytes, file_->size() - at_));
    size_t offset = 0;
    const uint64_t found = Length(VInt(bytes, &offset).value_or(-1), begin);
    at_ += offset;
    return found;
  };
  const uint64_t count = number();
  if (count > kMaxBytes) ThrowDamaged(fmt::format("a block claims {} records", count), begin);
  for (int i = 0; i < 4; ++i) {
    const uint64_t size = number();
    if (size > file_->size() - at_) ThrowDamaged("it ends inside a block", begin);
    if (part) part(AtWithoutMark(at_, size, "a block", begin));
    at_ += size;
  }
  return count;
}

SequenceReader::Record SequenceReader::NextOfBlock() {
  const auto take = [this](int sizes) {
    const uint64_t size = Length(VInt(block_[sizes], &offsets_[sizes]).value_or(-1), block_at_);
    size_t& offset = offsets_[sizes + 1];
    const std::string_view rest = std::string_view(block_[sizes + 1]).substr(offset);
    if (size > rest.size()) ThrowDamaged("a block is shorter than its lengths say", block_at_);
    offset += size;
    return Payload(rest.substr(0, size), block_at_);
  };
  const std::string_view key = take(0);
  --rows_left_;
  return {key, take(2)};
}

SequenceBatch SequenceReader::NextBatch(size_t most_records, size_t most_bytes) {
  Require(most_records > 0, ErrorCode::kInvalidArgument,
          "the number of records to read from {} must be positive", name_);
  most_bytes = std::min<size_t>(most_bytes, kMaxBytes);
  const bool in_place = mapped_ && !packed();
  SequenceBatch batch;
  const char* first = nullptr;
  size_t key_bytes = 0;
  while (batch.keys.size() < most_records) {
    if (!pending_ && !(pending_ = Next())) break;
    const auto [key, value] = *pending_;
    // In a mapped file, the values of a batch are in one range of bytes. The keys between them are
    // skipped, because no view refers to them.
    if (first == nullptr) first = value.data();
    const size_t offset =
        in_place ? static_cast<size_t>(value.data() - first) : batch.copied.size();
    if (!batch.keys.empty() &&
        (offset + value.size() > most_bytes || key_bytes + key.size() > most_bytes)) {
      break;
    }
    batch.keys.emplace_back(key);
    key_bytes += key.size();
    AppendView(&batch.views, value, offset);
    if (in_place) {
      batch.in_place = {first, offset + value.size()};
    } else {
      batch.copied.append(value);
    }
    pending_.reset();
  }
  return batch;
}

// Reads only the lengths and skips the bytes between them, so a damaged record may be counted.
uint64_t SequenceReader::Count(uint64_t begin, uint64_t end) {
  Begin(begin, end);
  uint64_t count = 0;
  while (AtContent()) {
    if (in_blocks_) {
      count += PassBlock(nullptr);
      continue;
    }
    const uint64_t left = file_->size() - at_;
    if (left < kLengths) ThrowDamaged("it ends inside a record", at_);
    const uint64_t size = Number(file_->At(at_, kCount));
    if (size > left - kLengths) ThrowDamaged("it ends inside a record", at_);
    at_ += kLengths + size;
    ++count;
  }
  return count;
}

uint64_t SequenceReader::Length(int64_t size, uint64_t at) const {
  if (size < 0) ThrowDamaged(fmt::format("an invalid length of {}", size), at);
  return static_cast<uint64_t>(size);
}

std::string SequenceReader::Unpacked(std::string_view packed, uint64_t at) const {
  try {
    return unpack_(packed);
  } catch (const Error& error) {
    ThrowDamaged(fmt::format("a value cannot be decompressed ({})", error.message()), at);
  }
}

std::string_view SequenceReader::Payload(std::string_view written, uint64_t at) const {
  if (written.size() < kCount || Number(written) != written.size() - kCount) {
    ThrowDamaged(fmt::format("the length in a key or value of {} bytes is wrong", written.size()),
                 at);
  }
  return written.substr(kCount);
}

void SequenceReader::ThrowDamaged(std::string_view what, uint64_t at) const {
  Throw(ErrorCode::kInvalidArgument, "{} is damaged: {} at byte {}; write it again", name_, what,
        at);
}

}  // namespace hearth::formats
