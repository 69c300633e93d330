// Records of a SequenceFile of Hadoop, found where they lie in the mapped file. (Layout: the
// documentation of org.apache.hadoop.io.SequenceFile.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/formats/mapped_file.h"

namespace hearth::formats {

// Those between the first marks at or behind two places, so that each is in one of the ranges that
// divide a file. One thread; keeps the mapping.
class SequenceRecords {
 public:
  struct Record {
    std::string_view key, value;  // valid as long as the mapping
  };

  // How many bytes of a file Reads() has to see.
  static size_t HeadBytes();
  // Whether a file that begins so is of the kind that is read here: version 6, BytesWritable for
  // keys and values, not compressed, no metadata.
  static bool Reads(std::string_view head);

  // `low` <= `high`. Throws kInvalidArgument where Reads() is false of the file.
  SequenceRecords(std::shared_ptr<const MappedFile> file, uint64_t low, uint64_t high);

  // The next ones: at most `most_records`, a positive number, whose values lie within `most_bytes`
  // (and 2 GiB) of the file but for a single one; none behind the last. Throws kInvalidArgument
  // where the file is damaged; the records before are lost then.
  std::vector<Record> Next(size_t most_records, size_t most_bytes);

 private:
  std::string_view bytes() const;
  // Where the first mark at or behind it is; the file's end behind the last one.
  uint64_t MarkBehind(uint64_t at) const;
  // The record at `at_`, which stays.
  Record Look() const;
  uint32_t NumberAt(uint64_t at) const;
  [[noreturn]] void ThrowDamaged(uint64_t at) const;

  std::shared_ptr<const MappedFile> file_;
  std::string mark_;
  uint64_t at_, end_;
};

// The values as Arrow's format of binary views has them, 16 bytes each: places, of 31 bits, count
// from the first value.
std::string BinaryViews(const std::vector<SequenceRecords::Record>& records);

}  // namespace hearth::formats
