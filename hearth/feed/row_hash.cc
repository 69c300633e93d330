#include "hearth/feed/row_hash.h"

#include <algorithm>
#include <array>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace hearth::feed {
namespace {

// So many rows at a time: their hashes stay in the first-level cache.
constexpr int64_t kRowsAtOnce = 256;
// Odd, so that every row before counts with all its bits.
constexpr uint64_t kStep = 0x9E3779B97F4A7C15;
constexpr uint64_t kNull = 0xD1B54A32D192ED03;

struct Range {
  int64_t begin, end;
};

uint64_t AddNull(uint64_t hash) { return (hash ^ kNull) * kStep; }

Range RangeOf(const ColumnView& column, int64_t row) {
  const void* offsets = column.buffers().offsets;
  switch (OffsetWidth(column.type())) {
    case 4:
      return {static_cast<const int32_t*>(offsets)[row],
              static_cast<const int32_t*>(offsets)[row + 1]};
    case 8:
      return {static_cast<const int64_t*>(offsets)[row],
              static_cast<const int64_t*>(offsets)[row + 1]};
    default:
      return {row * column.list_size(), (row + 1) * column.list_size()};
  }
}

void AddValues(const ColumnView& column, Range rows, uint64_t* hashes);

// Bytes of fixed or of varying length, which lie one after the other.
void AddBytes(const ColumnView& column, Range rows, uint64_t* hashes) {
  const int64_t width = NumberWidth(column.type());
  const uint8_t* data = column.buffers().data;
  for (int64_t row = rows.begin; row < rows.end; ++row, ++hashes) {
    if (column.IsNull(row)) {
      *hashes = AddNull(*hashes);
    } else if (width > 0) {
      *hashes = XXH3_64bits_withSeed(data + row * width, static_cast<size_t>(width), *hashes);
    } else {
      const Range value = RangeOf(column, row);
      *hashes = XXH3_64bits_withSeed(data + value.begin,
                                     static_cast<size_t>(value.end - value.begin), *hashes);
    }
  }
}

void AddBools(const ColumnView& column, Range rows, uint64_t* hashes) {
  for (int64_t row = rows.begin; row < rows.end; ++row, ++hashes) {
    const auto bit = static_cast<uint8_t>(column.buffers().data[row >> 3] >> (row & 7) & 1);
    *hashes = column.IsNull(row) ? AddNull(*hashes) : XXH3_64bits_withSeed(&bit, 1, *hashes);
  }
}

bool HasNulls(const ColumnView& column, Range values) {
  if (column.buffers().validity == nullptr) return false;
  for (int64_t i = values.begin; i < values.end; ++i) {
    if (column.IsNull(i)) return true;
  }
  return false;
}

// Numbers of a list are hashed as they lie. Where they do not lie bare, the list's hash is that of
// its items' hashes; a row's hash must not depend on what other rows of its batch hold.
void AddLists(const ColumnView& column, Range rows, uint64_t* hashes) {
  const ColumnView& items = column.children()[0];
  const int64_t width = NumberWidth(items.type());
  const uint8_t* data = items.buffers().data;
  std::vector<uint64_t> item_hashes;
  for (int64_t row = rows.begin; row < rows.end; ++row, ++hashes) {
    if (column.IsNull(row)) {
      *hashes = AddNull(*hashes);
      continue;
    }
    const Range range = RangeOf(column, row);
    const auto count = static_cast<size_t>(range.end - range.begin);
    if (width > 0 && !HasNulls(items, range)) {
      *hashes = XXH3_64bits_withSeed(data + range.begin * width, count * static_cast<size_t>(width),
                                     *hashes);
      continue;
    }
    item_hashes.assign(count, 0);
    AddValues(items, range, item_hashes.data());
    *hashes = XXH3_64bits_withSeed(item_hashes.data(), count * sizeof(uint64_t), *hashes);
  }
}

// Below a null there is anything, so what was added there is taken back.
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
  AddBytes(column, rows, hashes);
}

}  // namespace

uint64_t HashRows(uint64_t hash, const std::vector<ColumnView>& columns, int64_t rows) {
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

}  // namespace hearth::feed
