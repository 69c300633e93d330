// Element types and reduction operators of the collective.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hearth::collective {

// Type of an element. A bool is a byte; any value other than 0 counts as true.
enum class DataType : uint8_t {
  kFloat32,
  kFloat64,
  kInt32,
  kInt64,
  kUint8,
  kFloat16,
  kBfloat16,
  kBool,
};

// Reduction operator. kMin and kMax return NaN if any rank's value is NaN (like IEEE 754-2019's
// minimum, torch.minimum and NumPy), so that no rank's failure is hidden and the order of the ranks
// does not matter. Integer sums wrap around; an integer mean is the sum divided by the number of
// ranks, rounded towards zero. For bools, kSum and kMax are "or", kMin is "and", and there is no
// mean.
enum class Op : uint8_t { kSum, kMin, kMax, kMean };

// Returns the table's entry for an enumerator, or `otherwise` if the value is out of range, as it
// may be if a peer sent it.
template <typename Entry, size_t kSize, typename Enum>
constexpr Entry EntryOf(const Entry (&table)[kSize], Enum value, Entry otherwise) {
  const auto index = static_cast<size_t>(value);
  return index < kSize ? table[index] : otherwise;
}

constexpr size_t SizeOf(DataType type) {
  constexpr size_t kSizes[] = {4, 8, 4, 8, 1, 2, 2, 1};
  return EntryOf(kSizes, type, size_t{0});
}

constexpr const char* NameOf(DataType type) {
  constexpr const char* kNames[] = {"float32", "float64", "int32",    "int64",
                                    "uint8",   "float16", "bfloat16", "bool"};
  return EntryOf(kNames, type, "unknown type");
}

constexpr const char* NameOf(Op op) {
  constexpr const char* kNames[] = {"sum", "min", "max", "mean"};
  return EntryOf(kNames, op, "unknown op");
}

// Elements [begin, end).
struct Range {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
};

// Part `index` of `count` elements divided into `parts` parts that differ by at most one element;
// the longer parts come first.
constexpr Range Part(size_t count, int parts, int index) {
  const size_t each = count / static_cast<size_t>(parts);
  const size_t longer = count % static_cast<size_t>(parts);
  const auto i = static_cast<size_t>(index);
  const size_t begin = i * each + (i < longer ? i : longer);
  return {begin, begin + each + (i < longer ? 1 : 0)};
}

}  // namespace hearth::collective
