#include "hearth/batch/row_hash.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace hearth::batch {
namespace {

// Rows per block, chosen so that their hashes fit into the L1 cache.
constexpr int64_t kRowsAtOnce = 256;
// Odd, so that the multiplication is invertible and loses no bits of earlier rows.
constexpr uint64_t kStep = 0x9E3779B97F4A7C15;
constexpr uint64_t kNull = 0xD1B54A32D192ED03;
constexpr uint64_t kWidth = 0xA0761D6478BD642F;

struct Range {
  int64_t begin, end;
};

// Range of a row's bytes or items.
class Ranges {
 public:
  explicit Ranges(const ColumnView& column)
      : offsets_(column.buffers().offsets),
        locations_(column.buffers().locations),
        width_(OffsetWidth(column.type())),
        size_(column.list_size()) {}

  Range operator()(int64_t row) const {
    if (width_ == 4) return Between<int32_t>(row);
    if (width_ == 8) return Between<int64_t>(row);
    if (locations_ != nullptr) {
      const FileLocation& location = locations_[row];
      return {static_cast<int64_t>(location.begin),
              static_cast<int64_t>(location.begin + location.bytes)};
    }
    return {row * size_, (row + 1) * size_};
  }

 private:
  template <typename Offset>
  Range Between(int64_t row) const {
    const auto* offsets = static_cast<const Offset*>(offsets_);
    return {offsets[row], offsets[row + 1]};
  }

  const void* offsets_;
  const FileLocation* locations_;
  int64_t width_, size_;
};

// Uses a separate constant, so that null differs from the number 0 and from an empty string.
uint64_t AddNull(uint64_t hash) { return (hash ^ kNull) * kStep; }

// Hashes a number of `width` bytes by one multiplication; XXH3 takes three times as long.
uint64_t AddNumber(uint64_t hash, uint64_t number, uint64_t width) {
  hash = ((hash + width * kWidth) ^ number) * kStep;
  return hash ^ hash >> 32;  // the upper bits depend on all others
}

// The previous hash is the seed, so the order of columns matters.
uint64_t AddBytes(uint64_t hash, const uint8_t* bytes, int64_t count) {
  return XXH3_64bits_withSeed(bytes, static_cast<size_t>(count), hash);
}

void AddValues(const ColumnView& column, Range rows, uint64_t* hashes);

template <typename Bits>
void AddNumbers(const ColumnView& column, Range rows, uint64_t* hashes) {
  const uint8_t* data = column.buffers().data;
  const bool all = column.buffers().validity == nullptr;
  for (int64_t row = rows.begin; row < rows.end; ++row, ++hashes) {
    Bits bits;
    std::memcpy(&bits, data + row * static_cast<int64_t>(sizeof bits), sizeof bits);
    *hashes = all || !column.IsNull(row) ? AddNumber(*hashes, bits, sizeof bits) : AddNull(*hashes);
  }
}

void AddNumbers(const ColumnView& column, Range rows, uint64_t* hashes) {
  switch (NumberWidth(column.type())) {
    case 1:
      return AddNumbers<uint8_t>(column, rows, hashes);
    case 2:
      return AddNumbers<uint16_t>(column, rows, hashes);
    case 4:
      return AddNumbers<uint32_t>(column, rows, hashes);
    default:
      return AddNumbers<uint64_t>(column, rows, hashes);
  }
}

void AddTexts(const ColumnView& column, Range rows, uint64_t* hashes) {
  const Ranges ranges(column);
  const uint8_t* data = column.buffers().data;
  for (int64_t row = rows.begin; row < rows.end; ++row, ++hashes) {
    const Range text = ranges(row);
    *hashes = column.IsNull(row) ? AddNull(*hashes)
                                 : AddBytes(*hashes, data + text.begin, text.end - text.begin);
  }
}

void AddBools(const ColumnView& column, Range rows, uint64_t* hashes) {
  for (int64_t row = rows.begin; row < rows.end; ++row, ++hashes) {
    const auto bit = static_cast<uint64_t>(column.buffers().data[row >> 3] >> (row & 7) & 1);
    *hashes = column.IsNull(row) ? AddNull(*hashes) : AddNumber(*hashes, bit, 1);
  }
}

bool HasNulls(const ColumnView& column, Range values) {
  if (column.buffers().validity == nullptr) return false;
  for (int64_t i = values.begin; i < values.end; ++i) {
    if (column.IsNull(i)) return true;
  }
  return false;
}

// Numeric lists without nulls are hashed as bytes. For other lists, the hashes of the items are
// hashed, because a row's hash must not depend on other rows of its batch.
void AddLists(const ColumnView& column, Range rows, uint64_t* hashes) {
  const ColumnView& items = column.children()[0];
  const Ranges ranges(column);
  const int64_t width = NumberWidth(items.type());
  const uint8_t* data = items.buffers().data;
  std::vector<uint64_t> item_hashes;
  for (int64_t row = rows.begin; row < rows.end; ++row, ++hashes) {
    if (column.IsNull(row)) {
      *hashes = AddNull(*hashes);
      continue;
    }
    const Range range = ranges(row);
    if (width > 0 && !HasNulls(items, range)) {
      *hashes = AddBytes(*hashes, data + range.begin * width, (range.end - range.begin) * width);
      continue;
    }
    const auto count = static_cast<size_t>(range.end - range.begin);
    item_hashes.assign(count, 0);
    AddValues(items, range, item_hashes.data());
    *hashes = XXH3_64bits_withSeed(item_hashes.data(), count * sizeof(uint64_t), *hashes);
  }
}

// The bytes of fields under a null struct are undefined, so the hash of such a row continues from
// the one before its fields.
void AddStructs(const ColumnView& column, Range rows, uint64_t* hashes) {
  const std::vector<uint64_t> before(hashes, hashes + (rows.end - rows.begin));
  for (const ColumnView& child : column.children()) AddValues(child, rows, hashes);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const auto i = static_cast<size_t>(row - rows.begin);
    if (column.IsNull(row)) hashes[i] = AddNull(before[i]);
  }
}

void AddValues(const ColumnView& column, Range rows, uint64_t* hashes) {
  if (column.type() == ColumnType::kStruct) return AddStructs(column, rows, hashes);
  if (column.type() == ColumnType::kBool) return AddBools(column, rows, hashes);
  if (IsList(column.type())) return AddLists(column, rows, hashes);
  if (IsBytes(column.type())) return AddTexts(column, rows, hashes);
  AddNumbers(column, rows, hashes);
}

// Includes the numbers of columns and children, so that a struct's field differs from a column
// after the struct.
uint64_t AddNamesAndTypes(uint64_t hash, const std::vector<ColumnView>& columns) {
  hash = AddNumber(hash, columns.size(), sizeof(uint64_t));
  for (const ColumnView& column : columns) {
    hash = XXH3_64bits_withSeed(column.name().data(), column.name().size(), hash);
    // Binaries hash equally whether their values are in a file or in the batch.
    const ColumnType type =
        column.type() == ColumnType::kFileBinary ? ColumnType::kBinary : column.type();
    hash = AddNumber(hash, static_cast<uint64_t>(type), sizeof(uint32_t));
    hash = AddNumber(hash, static_cast<uint64_t>(column.list_size()), sizeof(uint64_t));
    hash = AddNamesAndTypes(hash, column.children());
  }
  return hash;
}

}  // namespace

uint64_t HashRows(uint64_t hash, const std::vector<ColumnView>& columns, int64_t rows) {
  // Hashes each row over its columns. Works column by column, so that a column's type is examined
  // once per 256 rows. Then chains the rows' hashes: hash = (hash + h) * kStep for each row's h.
  // The result depends on the order of rows but not on the blocks.
  std::array<uint64_t, kRowsAtOnce> hashes;
  for (int64_t begin = 0; begin < rows; begin += kRowsAtOnce) {
    const Range range{begin, std::min(rows, begin + kRowsAtOnce)};
    const auto count = static_cast<size_t>(range.end - range.begin);
    std::fill_n(hashes.begin(), count, 0);
    for (const ColumnView& column : columns) AddValues(column, range, hashes.data());
    for (size_t i = 0; i < count; ++i) hash = (hash + hashes[i]) * kStep;
  }
  return hash;
}

uint64_t HashBatch(uint64_t hash, const BatchView& batch) {
  return HashRows(AddNamesAndTypes(hash, batch.columns()), batch.columns(), batch.rows());
}

}  // namespace hearth::batch
