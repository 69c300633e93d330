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

// Keys and values of consecutive records.
struct SequenceBatch {
  std::vector<std::string> keys;
  // The values as Arrow binary views of 16 bytes each, with 31-bit offsets relative to the first
  // value.
  std::string views;
  // The bytes to which the views refer: those of the mapped file, or `copied`.
  std::string_view values() const { return in_place.empty() ? std::string_view(copied) : in_place; }

  std::string_view in_place;
  std::string copied;
};

// Reads the records of one file. Not thread-safe. Throws kInvalidArgument for a damaged file or
// another format, and the errors of FileBytes::At().
class SequenceReader {
 public:
  // A record, whose bytes are in the reader's memory.
  struct Record {
    std::string_view key, value;
  };
  // A function that decompresses bytes; throws Error if they are damaged.
  using Unpack = std::function<std::string(std::string_view packed)>;
  // A function that returns the decompressor of the codec with this Java class name; empty if the
  // codec is unknown.
  using FindUnpack = std::function<Unpack(const std::string& codec)>;

  // Reads the header. `name` is for error messages.
  SequenceReader(std::unique_ptr<FileBytes> file, std::string name, const FindUnpack& find);

  bool packed() const { return unpack_ != nullptr; }
  // From now on reads from a mapping of the same file, so that uncompressed values are not copied.
  void Map(std::shared_ptr<const MappedFile> file);

  // Selects the range of records from the first marker at or after `begin` to the first marker at
  // or after `end`, so that consecutive ranges divide the file. `wanted` is the end of the last
  // range that will be read. If a range follows the previous one, reading continues without a
  // search.
  void Begin(uint64_t begin, uint64_t end, uint64_t wanted = 0);
  // Returns the next record, valid until the next call; nullopt after the last one.
  std::optional<Record> Next();
  // Returns the next records, at most `most_records` (positive). Their values span at most
  // `most_bytes` (and 2 GiB), and so do their keys, unless a single record is larger. Empty after
  // the last record. Records before an error are lost.
  SequenceBatch NextBatch(size_t most_records, size_t most_bytes);
  // Number of records in a range, read from their lengths only.
  uint64_t Count(uint64_t begin, uint64_t end);

 private:
  void ReadHeader(const FindUnpack& find);
  uint64_t FindMark(uint64_t begin, uint64_t end);
  // Skips markers; returns whether a record, or a block after its marker, starts at `at_`.
  bool AtContent();
  Record ReadRecord();
  // Returns bytes [at, at + size), part of the `what` that starts at `begin`. Throws if they
  // contain a sync marker that starts after the range, because the next range would start there.
  std::string_view AtWithoutMark(uint64_t at, uint64_t size, const char* what, uint64_t begin);
  void ReadBlock();
  // Reads the block at `at_`: calls `part` with each of its four parts and returns its number of
  // records.
  uint64_t PassBlock(const std::function<void(std::string_view packed)>& part);
  Record NextOfBlock();
  uint64_t Length(int64_t size, uint64_t at) const;
  std::string Unpacked(std::string_view packed, uint64_t at) const;
  // The bytes in a serialized BytesWritable, which starts with their number.
  std::string_view Payload(std::string_view written, uint64_t at) const;
  [[noreturn]] void ThrowDamaged(std::string_view what, uint64_t at) const;

  std::unique_ptr<FileBytes> file_;
  std::string name_;
  Unpack unpack_;
  bool in_blocks_ = false, mapped_ = false;
  std::string mark_;    // the escape and the sync marker
  uint64_t first_ = 0;  // end of the header
  uint64_t at_ = 0;     // position of the next record or marker
  uint64_t end_ = 0;    // end of the range
  uint64_t ended_ = 0;  // end of the last range, if read completely: `at_` is at its marker
  std::optional<Record> pending_;  // record that did not fit in the last batch
  std::string value_;              // the last decompressed value
  // The current block and the position in it.
  std::string block_[4];
  uint64_t block_at_ = 0, rows_left_ = 0;
  size_t offsets_[4] = {};
};

}  // namespace hearth::formats
