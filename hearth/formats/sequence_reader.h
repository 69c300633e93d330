// Records of a SequenceFile of Hadoop, version 6: pairs of byte strings, between marks at which it
// may be read from the middle. (Layout: the documentation of org.apache.hadoop.io.SequenceFile.)
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

struct SequenceBatch {
  std::vector<std::string> keys;
  // The values as Arrow's format of binary views has them, 16 bytes each: positions, of 31 bits,
  // count from the first value.
  std::string views;
  // The bytes that these are in: of the mapped file, or `copied`.
  std::string_view values() const { return in_place.empty() ? std::string_view(copied) : in_place; }

  std::string_view in_place;
  std::string copied;
};

// One thread. Throws kInvalidArgument for a file that is damaged or of another kind, and what
// reading its bytes throws.
class SequenceReader {
 public:
  struct Record {
    std::string_view key, value;
  };
  // Unpacks bytes; throws Error where they are damaged.
  using Unpack = std::function<std::string(std::string_view packed)>;
  // What unpacks the bytes of the codec with this name of a Java class; empty for an unknown one.
  using FindUnpack = std::function<Unpack(const std::string& codec)>;

  // Reads the header. `name` is for messages.
  SequenceReader(std::unique_ptr<FileBytes> file, std::string name, const FindUnpack& find);

  bool packed() const { return unpack_ != nullptr; }
  // The same file, mapped: values that are not packed stay where they lie.
  void Map(std::shared_ptr<const MappedFile> file);

  // From now on the records between the first marks at or behind the two positions are read, so
  // that each is in one of the ranges that divide a file. `wanted`: the end of the last range that
  // will be read; a range that follows the one before is read on from there.
  void Begin(uint64_t begin, uint64_t end, uint64_t wanted = 0);
  // The next record, valid until the next call; nothing behind the last one.
  std::optional<Record> Next();
  // The next records: at most `most_records`, a positive number, whose values lie within
  // `most_bytes` (and 2 GiB), as do their keys, but for a single one; none behind the last. The
  // records before an error are lost.
  SequenceBatch NextBatch(size_t most_records, size_t most_bytes);
  // How many records a range has, by their lengths alone.
  uint64_t Count(uint64_t begin, uint64_t end);

 private:
  void ReadHeader(const FindUnpack& find);
  uint64_t FindMark(uint64_t begin, uint64_t end);
  // Whether a record, or a block behind its mark, begins at `at_`; passes the marks before it.
  bool AtContent();
  Record ReadRecord();
  // Bytes of `what`, which begins at `begin`. A mark in them that begins behind the range is
  // damage: the next range would begin there.
  std::string_view AtWithoutMark(uint64_t at, uint64_t size, const char* what, uint64_t begin);
  void ReadBlock();
  // The count and the four parts of a block that begins at `at_`; `part` is called with each.
  uint64_t PassBlock(const std::function<void(std::string_view packed)>& part);
  Record NextOfBlock();
  uint64_t Length(int64_t size, uint64_t at) const;
  std::string Unpacked(std::string_view packed, uint64_t at) const;
  // The bytes of a BytesWritable: their number comes first.
  std::string_view Payload(std::string_view written, uint64_t at) const;
  [[noreturn]] void ThrowDamaged(std::string_view what, uint64_t at) const;

  std::unique_ptr<FileBytes> file_;
  std::string name_;
  Unpack unpack_;
  bool in_blocks_ = false, mapped_ = false;
  std::string mark_;    // with the escape before it
  uint64_t first_ = 0;  // where the header ends
  uint64_t at_ = 0;     // of the next record or mark
  uint64_t end_ = 0;    // of the range
  uint64_t ended_ = 0;  // the end of a range that was read whole, and `at_` is the mark behind it
  std::optional<Record> pending_;  // did not fit into the last batch
  std::string value_;              // unpacked
  // The block that is being read, and where in it.
  std::string block_[4];
  uint64_t block_at_ = 0, rows_left_ = 0;
  size_t places_[4] = {};
};

}  // namespace hearth::formats
