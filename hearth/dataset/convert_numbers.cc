#include "hearth/dataset/convert_numbers.h"

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "hearth/base/error.h"

namespace hearth::dataset {
namespace {

using batch::ColumnType;

// Calls visit(T()) with the type of the values; a bool takes one byte.
template <typename Visit>
void VisitType(ColumnType type, Visit visit) {
  switch (type) {
    case ColumnType::kBool:
      return visit(bool());
    case ColumnType::kInt8:
      return visit(int8_t());
    case ColumnType::kInt16:
      return visit(int16_t());
    case ColumnType::kInt32:
      return visit(int32_t());
    case ColumnType::kInt64:
      return visit(int64_t());
    case ColumnType::kUint8:
      return visit(uint8_t());
    case ColumnType::kUint16:
      return visit(uint16_t());
    case ColumnType::kUint32:
      return visit(uint32_t());
    case ColumnType::kUint64:
      return visit(uint64_t());
    case ColumnType::kFloat32:
      return visit(float());
    case ColumnType::kFloat64:
      return visit(double());
    default:
      Throw(ErrorCode::kInternal, "{} is not a numeric type", batch::ColumnTypeName(type));
  }
}

// True if `To` can represent the value, up to rounding. The code for each pair of types is selected
// at compile time.
template <typename To, typename From>
bool Holds(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value == From(0) || value == From(1);
  } else if constexpr (std::is_same_v<From, bool>) {
    return true;
  } else if constexpr (std::is_floating_point_v<To>) {
    // A finite number must not become infinite; rounding is allowed, even of a large integer.
    if constexpr (std::is_floating_point_v<From>) {
      return !std::isfinite(value) || std::isfinite(static_cast<To>(value));
    }
    return true;
  } else if constexpr (std::is_floating_point_v<From>) {
    // Compares with the smallest value of `To` and with its largest value plus one: both are exact
    // as floats, whereas the largest value may not be.
    constexpr From kLeast = static_cast<From>(std::numeric_limits<To>::min());
    const From end = std::ldexp(From(1), std::numeric_limits<To>::digits);
    return value >= kLeast && value < end && value == std::trunc(value);
  } else {
    return std::in_range<To>(value);
  }
}

// Checks all values before writing the first, so a failure leaves the output unchanged.
template <typename From, typename To>
void Convert(const Conversion& conversion, const From* values, int64_t count, To* converted) {
  bool all = true;
  // The loop has no early exit so that it is vectorised; usually every value fits.
  for (int64_t i = 0; i < count; ++i) all &= Holds<To>(values[i]);
  if (!all) {
    int64_t lost = 0, first = -1;
    for (int64_t i = 0; i < count; ++i) {
      if (Holds<To>(values[i])) continue;
      if (lost++ == 0) first = i;
    }
    Throw(ErrorCode::kInvalidArgument,
          "the column '{}' has the value {}, which {} cannot hold ({} of {} values of a batch): "
          "change the values or the type",
          conversion.column, +values[first], batch::ColumnTypeName(conversion.to), lost, count);
  }
  for (int64_t i = 0; i < count; ++i) converted[i] = static_cast<To>(values[i]);
}

}  // namespace

ColumnType NumberTypeOf(std::string_view name) {
  for (uint32_t number = 1; number <= static_cast<uint32_t>(ColumnType::kFloat64); ++number) {
    const auto type = static_cast<ColumnType>(number);
    if (batch::ColumnTypeName(type) == name) return type;
  }
  Throw(
      ErrorCode::kInvalidArgument,
      "columns cannot be converted to {}: choose bool, int8 to int64, uint8 to uint64, float32 or "
      "float64",
      name);
}

void ConvertNumbers(const Conversion& conversion, const std::byte* values, int64_t count,
                    std::byte* converted) {
  VisitType(conversion.from, [&](auto from) {
    VisitType(conversion.to, [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      Convert(conversion, reinterpret_cast<const From*>(values), count,
              reinterpret_cast<To*>(converted));
    });
  });
}

}  // namespace hearth::dataset
