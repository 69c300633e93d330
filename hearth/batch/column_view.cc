#include "hearth/batch/column_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "hearth/base/error.h"

namespace hearth::batch {
namespace {

// Image validation ensures that buffers are aligned for their type, so a plain cast is safe.
template <typename T>
const T* ValuesOf(const ColumnBuffers& buffers) {
  return reinterpret_cast<const T*>(buffers.data);
}

bool BitAt(const uint8_t* bits, int64_t index) { return bits[index >> 3] >> (index & 7) & 1; }

// Calls visit(T const*) with the values of a numeric column; false for other types.
template <typename Visit>
bool VisitNumbers(ColumnType type, const ColumnBuffers& buffers, Visit visit) {
  switch (type) {
    case ColumnType::kInt8:
      return visit(ValuesOf<int8_t>(buffers)), true;
    case ColumnType::kInt16:
      return visit(ValuesOf<int16_t>(buffers)), true;
    case ColumnType::kInt32:
      return visit(ValuesOf<int32_t>(buffers)), true;
    case ColumnType::kInt64:
      return visit(ValuesOf<int64_t>(buffers)), true;
    case ColumnType::kUint8:
      return visit(ValuesOf<uint8_t>(buffers)), true;
    case ColumnType::kUint16:
      return visit(ValuesOf<uint16_t>(buffers)), true;
    case ColumnType::kUint32:
      return visit(ValuesOf<uint32_t>(buffers)), true;
    case ColumnType::kUint64:
      return visit(ValuesOf<uint64_t>(buffers)), true;
    case ColumnType::kFloat32:
      return visit(ValuesOf<float>(buffers)), true;
    case ColumnType::kFloat64:
      return visit(ValuesOf<double>(buffers)), true;
    default:
      return false;
  }
}

bool IsNumberOrBool(ColumnType type) { return type <= ColumnType::kFloat64; }

bool IsByte(ColumnType type) { return type == ColumnType::kInt8 || type == ColumnType::kUint8; }

// Called for every value, so it does not use the type table.
bool HasWideOffsets(ColumnType type) {
  return type == ColumnType::kLargeUtf8 || type == ColumnType::kLargeBinary ||
         type == ColumnType::kLargeList;
}

constexpr int64_t kCacheLine = 64;

}  // namespace

ColumnView::ColumnView(std::string_view name, ArrowType type, int64_t length, ColumnBuffers buffers,
                       std::vector<ColumnView> children)
    : name_(name),
      type_(type),
      length_(length),
      buffers_(buffers),
      children_(std::move(children)) {}

void ColumnView::RequireValue(int64_t row, bool type_fits, std::string_view wanted) const {
  if (type_fits && !IsNull(row)) return;
  Require(type_fits, ErrorCode::kInvalidArgument, "column '{}' has type {}, but {} is needed",
          name_, ColumnTypeName(type()), wanted);
  Throw(ErrorCode::kInvalidArgument, "column '{}' is null in row {} of its batch, but {} is needed",
        name_, row, wanted);
}

double ColumnView::AsDouble(int64_t row) const {
  RequireValue(row, IsNumberOrBool(type()), "a number");
  if (type() == ColumnType::kBool) return BitAt(buffers_.data, row);
  double value = 0;
  VisitNumbers(type(), buffers_, [&](auto* values) { value = static_cast<double>(values[row]); });
  return value;
}

int64_t ColumnView::AsInt64(int64_t row) const {
  RequireValue(row, IsNumberOrBool(type()), "a whole number");
  if (type() == ColumnType::kBool) return BitAt(buffers_.data, row);
  int64_t value = 0;
  // NOLINTNEXTLINE(bugprone-signed-char-misuse): a column of int8 holds numbers, not characters
  VisitNumbers(type(), buffers_, [&](auto* values) { value = static_cast<int64_t>(values[row]); });
  return value;
}

// The range is in items of the child for lists, in bytes for strings.
ColumnView::Range ColumnView::ValueRange(int64_t row) const {
  if (type() == ColumnType::kFixedSizeList) return {row * list_size(), (row + 1) * list_size()};
  if (HasWideOffsets(type())) {
    const auto* offsets = static_cast<const int64_t*>(buffers_.offsets);
    return {offsets[row], offsets[row + 1]};
  }
  if (buffers_.locations != nullptr) {
    const FileLocation& location = buffers_.locations[row];
    return {static_cast<int64_t>(location.begin),
            static_cast<int64_t>(location.begin + location.bytes)};
  }
  const auto* offsets = static_cast<const int32_t*>(buffers_.offsets);
  return {offsets[row], offsets[row + 1]};
}

// Also accepts lists of bytes: Spark's array<byte>.
std::string_view ColumnView::Bytes(int64_t row) const {
  const bool listed = IsList(type()) && IsByte(children_[0].type());
  RequireValue(row, IsBytes(type()) || listed, "a string or binary");
  const Range range = ValueRange(row);
  // An empty column has no data buffer, so pointer arithmetic on it would be undefined.
  if (range.begin == range.end) return {};
  for (int64_t i = range.begin; listed && children_[0].buffers_.validity && i < range.end; ++i) {
    Require(!children_[0].IsNull(i), ErrorCode::kDataLoss,
            "the bytes in column '{}' have a null at position {}", name_, i - range.begin);
  }
  const uint8_t* data = listed ? children_[0].buffers_.data : buffers_.data;
  return {reinterpret_cast<const char*>(data) + range.begin,
          static_cast<size_t>(range.end - range.begin)};
}

std::string ColumnView::AsText(int64_t row) const {
  if (IsBytes(type())) return std::string(Bytes(row));
  RequireValue(row, IsNumberOrBool(type()), "a number or a string");
  if (type() == ColumnType::kBool) return BitAt(buffers_.data, row) ? "true" : "false";
  std::string text;
  // Unary plus converts a byte to int, which would otherwise print as a character.
  VisitNumbers(type(), buffers_, [&](auto* values) { text = fmt::format("{}", +values[row]); });
  return text;
}

int64_t ColumnView::ListLength(int64_t row) const {
  if (IsNumberOrBool(type())) return 1;
  RequireValue(row, IsList(type()), "a list of numbers");
  const Range range = ValueRange(row);
  return range.end - range.begin;
}

std::span<const float> ColumnView::FloatList(int64_t row, std::vector<float>* scratch) const {
  if (IsNumberOrBool(type())) {
    scratch->assign(1, static_cast<float>(AsDouble(row)));
    return *scratch;
  }
  RequireValue(row, IsList(type()) && IsNumberOrBool(children_[0].type()), "a list of numbers");
  const Range range = ValueRange(row);
  const ColumnView& values = children_[0];
  if (values.buffers_.validity != nullptr) {
    for (int64_t i = range.begin; i < range.end; ++i) {
      Require(!values.IsNull(i), ErrorCode::kInvalidArgument,
              "the list in column '{}' has a null at position {} in row {} of its batch", name_,
              i - range.begin, row);
    }
  }
  const auto count = static_cast<size_t>(range.end - range.begin);
  // Float32 values, the common case, need no copy.
  if (values.type() == ColumnType::kFloat32) {
    return {ValuesOf<float>(values.buffers_) + range.begin, count};
  }
  scratch->resize(count);
  const bool converted = VisitNumbers(values.type(), values.buffers_, [&](auto* from) {
    for (size_t i = 0; i < count; ++i) (*scratch)[i] = static_cast<float>(from[range.begin + i]);
  });
  if (!converted) {
    for (size_t i = 0; i < count; ++i) {
      (*scratch)[i] = BitAt(values.buffers_.data, range.begin + static_cast<int64_t>(i));
    }
  }
  return *scratch;
}

void ColumnView::PrefetchEntry(int64_t row) const {
  if (buffers_.locations != nullptr) {
    __builtin_prefetch(buffers_.locations + row);
  } else if (const int64_t width = OffsetWidth(type()); width != 0) {
    __builtin_prefetch(static_cast<const char*>(buffers_.offsets) + row * width);
  } else {
    __builtin_prefetch(buffers_.data + row * NumberWidth(type()));
  }
}

// Reads the row's offsets, so callers should first call PrefetchEntry for all rows.
void ColumnView::PrefetchValue(int64_t row) const {
  const bool list = IsList(type());
  if (!list && !IsBytes(type())) return;
  const uint8_t* data = list ? children_[0].buffers_.data : buffers_.data;
  const int64_t width = list ? NumberWidth(children_[0].type()) : 1;
  const Range range = ValueRange(row);
  if (range.begin == range.end || width == 0) return;  // width 0: items are bits or lists
  __builtin_prefetch(data + range.begin * width);
  // Short values often end in the next cache line; the hardware prefetcher handles long ones.
  __builtin_prefetch(data + std::min(range.begin * width + kCacheLine, range.end * width - 1));
}

const ColumnView* ColumnView::FindChild(std::string_view name) const {
  for (const ColumnView& child : children_) {
    if (child.name() == name) return &child;
  }
  return nullptr;
}

}  // namespace hearth::batch
