#include "hearth/feed/batch_checksum.h"

#include <string_view>

#include "hearth/feed/column_type.h"
#include "hearth/feed/crc32c.h"

namespace hearth::feed {
namespace {

uint32_t Mix(uint32_t sum, uint32_t value) { return (sum ^ value) * 0x9e3779b1u + (sum >> 15); }

uint32_t SumOfBytes(const void* bytes, int64_t count) {
  if (bytes == nullptr) return 0;
  return MaskedCrc32c({static_cast<const char*>(bytes), static_cast<size_t>(count)});
}

// Bits behind the last one may be anything.
uint32_t SumOfBits(const uint8_t* bits, int64_t count) {
  const uint32_t sum = SumOfBytes(bits, count / 8);
  if (count % 8 == 0) return sum;
  const auto last = static_cast<uint8_t>(bits[count / 8] & ((1 << count % 8) - 1));
  return Mix(sum, SumOfBytes(&last, 1));
}

bool HasNulls(const ColumnView& column) {
  for (int64_t row = 0; row < column.length(); ++row) {
    if (column.IsNull(row)) return true;
  }
  return false;
}

uint32_t SumOf(const ColumnView& column) {
  const ColumnBuffers& buffers = column.buffers();
  const int64_t length = column.length();
  uint32_t sum = SumOfBytes(column.name().data(), static_cast<int64_t>(column.name().size()));
  sum = Mix(sum, static_cast<uint32_t>(column.type()));
  sum = Mix(sum, static_cast<uint32_t>(length));
  if (buffers.validity != nullptr && HasNulls(column)) {
    sum = Mix(sum, SumOfBits(buffers.validity, length));
  }
  if (const int64_t width = OffsetWidth(column.type()); width != 0) {
    sum = Mix(sum, SumOfBytes(buffers.offsets, (length + 1) * width));
  }
  if (column.type() == ColumnType::kBool) {
    if (length != 0) sum = Mix(sum, SumOfBits(buffers.data, length));
  } else {
    sum = Mix(sum, SumOfBytes(buffers.data, buffers.data_bytes));
  }
  for (const ColumnView& child : column.children()) sum = Mix(sum, SumOf(child));
  return sum;
}

}  // namespace

uint32_t Checksum(const BatchView& batch) {
  auto sum = static_cast<uint32_t>(batch.rows());
  for (const ColumnView& column : batch.columns()) sum = Mix(sum, SumOf(column));
  return sum;
}

}  // namespace hearth::feed
