#include "hearth/batch/column_type.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace hearth::batch {
namespace {

struct TypeRow {
  ColumnType type;
  std::string_view format;  // a prefix, for fixed-size lists
  std::string_view name;
  int64_t number_width;
  int64_t offset_width;
};

constexpr std::array<TypeRow, 20> kTypes = {{
    {ColumnType::kBool, "b", "bool", 0, 0},
    {ColumnType::kInt8, "c", "int8", 1, 0},
    {ColumnType::kInt16, "s", "int16", 2, 0},
    {ColumnType::kInt32, "i", "int32", 4, 0},
    {ColumnType::kInt64, "l", "int64", 8, 0},
    {ColumnType::kUint8, "C", "uint8", 1, 0},
    {ColumnType::kUint16, "S", "uint16", 2, 0},
    {ColumnType::kUint32, "I", "uint32", 4, 0},
    {ColumnType::kUint64, "L", "uint64", 8, 0},
    {ColumnType::kFloat32, "f", "float32", 4, 0},
    {ColumnType::kFloat64, "g", "float64", 8, 0},
    {ColumnType::kUtf8, "u", "string", 0, 4},
    {ColumnType::kBinary, "z", "binary", 0, 4},
    {ColumnType::kLargeUtf8, "U", "large string", 0, 8},
    {ColumnType::kLargeBinary, "Z", "large binary", 0, 8},
    {ColumnType::kList, "+l", "list", 0, 4},
    {ColumnType::kLargeList, "+L", "large list", 0, 8},
    {ColumnType::kFixedSizeList, "+w:", "fixed-size list", 0, 0},
    {ColumnType::kStruct, "+s", "struct", 0, 0},
    {ColumnType::kFileBinary, "vz", "binary", 0, 0},
}};

// The table's entries are in the order of the enumerators, which start at 1.
const TypeRow& RowOf(ColumnType type) { return kTypes[static_cast<uint32_t>(type) - 1]; }

}  // namespace

bool ParseArrowFormat(std::string_view format, ArrowType* type) {
  constexpr std::string_view kFixed = "+w:";
  if (format.starts_with(kFixed)) {
    *type = {ColumnType::kFixedSizeList, 0};
    const char* end = format.data() + format.size();
    const auto parsed = std::from_chars(format.data() + kFixed.size(), end, type->list_size);
    return parsed.ec == std::errc() && parsed.ptr == end && type->list_size >= 0;
  }
  // Views become plain strings and binaries in an image. They are handled before the table lookup,
  // because in the table "vz" means kFileBinary, which is only exported.
  if (format == "vu" || format == "vz") {
    *type = {format == "vu" ? ColumnType::kUtf8 : ColumnType::kBinary, 0, true};
    return true;
  }
  for (const TypeRow& row : kTypes) {
    if (row.format == format) {
      *type = {row.type, 0};
      return true;
    }
  }
  return false;
}

std::string ArrowFormat(const ArrowType& type) {
  if (type.type == ColumnType::kFixedSizeList) return fmt::format("+w:{}", type.list_size);
  return std::string(RowOf(type.type).format);
}

std::string_view ColumnTypeName(ColumnType type) { return RowOf(type).name; }

bool IsKnownColumnType(uint32_t number) { return number >= 1 && number <= kTypes.size(); }

int64_t NumberWidth(ColumnType type) { return RowOf(type).number_width; }

int64_t OffsetWidth(ColumnType type) { return RowOf(type).offset_width; }

// Like the functions below, runs for every value, so it compares enumerators instead of using the
// table.
bool IsBytes(ColumnType type) {
  return (type >= ColumnType::kUtf8 && type <= ColumnType::kLargeBinary) ||
         type == ColumnType::kFileBinary;
}

bool IsList(ColumnType type) {
  return type >= ColumnType::kList && type <= ColumnType::kFixedSizeList;
}

}  // namespace hearth::batch
