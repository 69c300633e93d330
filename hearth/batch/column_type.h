// Column types of a batch, and their names in Arrow's C data interface.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::batch {

// The numbers are part of the batch image format (docs/format_batch.md).
enum class ColumnType : uint32_t {
  kBool = 1,
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kUint8 = 6,
  kUint16 = 7,
  kUint32 = 8,
  kUint64 = 9,
  kFloat32 = 10,
  kFloat64 = 11,
  kUtf8 = 12,
  kBinary = 13,
  kLargeUtf8 = 14,
  kLargeBinary = 15,
  kList = 16,
  kLargeList = 17,
  kFixedSizeList = 18,
  kStruct = 19,
  kFileBinary = 20,  // binary whose values are in a file (mapped_file.h)
};

// A type and its parameters, as in an Arrow format string.
struct ArrowType {
  ColumnType type;
  int64_t list_size;   // for a fixed-size list, else 0
  bool views = false;  // string or binary views (byte_views.h)
};

// Parses a format string of Arrow's C data interface; false for an unsupported type.
bool ParseArrowFormat(std::string_view format, ArrowType* type);
std::string ArrowFormat(const ArrowType& type);

std::string_view ColumnTypeName(ColumnType type);
bool IsKnownColumnType(uint32_t number);

// Bytes per value of a numeric type, 0 for other types (a bool is one bit).
int64_t NumberWidth(ColumnType type);
// Bytes per entry of the offsets buffer: 4 or 8; 0 for a type without offsets.
int64_t OffsetWidth(ColumnType type);
// True for strings and binaries.
bool IsBytes(ColumnType type);
// True for all three kinds of lists, which have one child.
bool IsList(ColumnType type);

}  // namespace hearth::batch
