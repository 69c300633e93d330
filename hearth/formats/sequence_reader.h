// Reads Hadoop SequenceFiles, version 6: pairs of byte strings, with sync markers at which reading
// can start. (Format: the documentation of org.apache.hadoop.io.SequenceFile.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/formats/file_bytes.h"

namespace hearth::formats {

// Consecutive records of a file.
struct SequenceBatch {
  std::vector<std::string> keys;
  // The values as Arrow binary views of 16 bytes each; their 31-bit offsets count from the first
  // value.
  std::string views;
  // The bytes that the views refer to: of the mapped file, or `copied`.
  std::string_view values() const { return in_place.empty() ? std::string_view(copied) : in_place; }

  std::string_view in_place;
  std::string copied;
};

// Not thread-safe. Throws kInvalidArgument for a damaged file or another format, and what reading
// the bytes throws.
class SequenceReader {
 public:
  // A key and a value; both refer to the reader's memory.
  struct Record {
    std::string_view key, value;
  };
  // Decompresses bytes; throws Error if they are damaged.
  using Unpack = std::function<std::string(std::string_view packed)>;
  // Returns the decompressor of the codec with this Java class name; empty if unknown.
  using FindUnpack = std::function<Unpack(const std::string& codec)>;

  // Reads the header. `name` is for error messages.
  SequenceReader(std::unique_ptr<FileBytes> file, std::string name, const FindUnpack& find);

  bool packed() const { return unpack_ != nullptr; }
  // Reads the same file from a mapping: uncompressed values are then not copied.
  void Map(std::shared_ptr<const MappedFile> file);

  // Selects the records between the first markers at or after the two positions, so that
  // consecutive ranges divide the file. `wanted`: end of the last range to be read; reading
  // continues into a range that follows the previous one.
  void Begin(uint64_t begin, uint64_t end, uint64_t wanted = 0);
  // The next record, valid until the next call; nullopt after the last one.
  std::optional<Record> Next();
  // The next records: at most `most_records` (positive), whose values span at most `most_bytes`
  // (and 2 GiB), and whose keys do too, unless a single record is larger; none after the last.
  // Records before an error are lost.
  SequenceBatch NextBatch(size_t most_records, size_t most_bytes);
  // Number of records in a range, read from their lengths only.
  uint64_t Count(uint64_t begin, uint64_t end);

 private:
  void ReadHeader(const FindUnpack& find);
  uint64_t FindMark(uint64_t begin, uint64_t end);
  // Skips markers; returns whether a record, or a block after its marker, starts at `at_`.
  bool AtContent();
  Record ReadRecord();
  // Bytes of `what`, which starts at `begin`. A sync marker in them that starts after the range is
  // damage: the next range would start there.
  std::string_view AtWithoutMark(uint64_t at, uint64_t size, const char* what, uint64_t begin);
  void ReadBlock();
  // The count and the four parts of a block at `at_`; calls `part` with each.
  uint64_t PassBlock(const std::function<void(std::string_view packed)>& part);
  Record NextOfBlock();
  uint64_t Length(int64_t size, uint64_t at) const;
  std::string Unpacked(std::string_view packed, uint64_t at) const;
  // Content of a BytesWritable, which starts with its length.
  std::string_view Payload(std::string_view written, uint64_t at) const;
  [[noreturn]] void ThrowDamaged(std::string_view what, uint64_t at) const;

  std::unique_ptr<FileBytes> file_;
  std::string name_;
  Unpack unpack_;
  bool in_blocks_ = false, mapped_ = false;
  std::string mark_;    // preceded by the escape
  uint64_t first_ = 0;  // end of the header
  uint64_t at_ = 0;     // position of the next record or marker
  uint64_t end_ = 0;    // end of the range
  uint64_t ended_ = 0;  // end of a range read to its end, with `at_` at the marker after it
  std::optional<Record> pending_;  // did not fit in the last batch
  std::string value_;              // decompressed
  // The current block and the position in it.
  std::string block_[4];
  uint64_t block_at_ = 0, rows_left_ = 0;
  size_t offsets_[4] = {};
};

}  // namespace hearth::formats
