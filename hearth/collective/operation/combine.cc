#include "hearth/collective/operation/combine.h"

#include <cstring>
#include <type_traits>

#include "hearth/base/for_each_cpu.h"
#include "hearth/collective/operation/half.h"

namespace hearth::collective {
namespace {

// A byte that the caller uses as a bool; it may have values other than 0 and 1.
struct Bool {
  uint8_t byte = 0;
};

// Callers' memory need not be aligned; compilers turn these copies into unaligned moves.
template <typename T>
HEARTH_INLINE T Load(const std::byte* from, size_t index) {
  T value;
  std::memcpy(&value, from + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
HEARTH_INLINE void Save(std::byte* into, size_t index, T value) {
  std::memcpy(into + index * sizeof(T), &value, sizeof(T));
}

// Converts a stored value to the type in which values are combined.
HEARTH_INLINE float Open(Float16 value) { return ToFloat(value); }
HEARTH_INLINE float Open(Bfloat16 value) { return ToFloat(value); }
HEARTH_INLINE bool Open(Bool value) { return value.byte != 0; }
template <typename T>
HEARTH_INLINE T Open(T value) {
  return value;
}

template <typename T, typename Value>
HEARTH_INLINE T Store(Value value) {
  if constexpr (std::is_same_v<T, Float16>) {
    return ToFloat16(value);
  } else if constexpr (std::is_same_v<T, Bfloat16>) {
    return ToBfloat16(value);
  } else if constexpr (std::is_same_v<T, Bool>) {
    return {static_cast<uint8_t>(value ? 1 : 0)};
  } else {
    return value;
  }
}

// Adds two values. Integers wrap around, as NumPy's do. The sum is unsigned because signed overflow
// is undefined.
template <typename T>
struct Sum {
  static HEARTH_INLINE T Of(T a, T b) {
    if constexpr (std::is_same_v<T, bool>) {
      return a || b;
    } else if constexpr (std::is_integral_v<T>) {
      using Unsigned = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
      return a + b;
    }
  }
};

template <typename T>
HEARTH_INLINE bool IsNan(T value) {
  if constexpr (std::is_floating_point_v<T>) return value != value;
  return false;
}

// Returns the smaller value, or NaN if either value is NaN, as numpy.minimum does: `b < a` is false
// if `a` is NaN, so `a` is returned; a NaN in `b` is selected explicitly. `|` instead of `||`
// avoids a branch, so that compilers vectorize the loop.
template <typename T>
struct Min {
  static HEARTH_INLINE T Of(T a, T b) { return (b < a) | IsNan(b) ? b : a; }
};

template <typename T>
struct Max {
  static HEARTH_INLINE T Of(T a, T b) { return (a < b) | IsNan(b) ? b : a; }
};

template <typename T, template <typename> class Operation>
HEARTH_INLINE T Apply(T a, T b) {
  return Store<T>(Operation<decltype(Open(a))>::Of(Open(a), Open(b)));
}

// Calls `function` with a null pointer whose static type selects the element type.
template <typename Function>
HEARTH_INLINE void WithType(DataType type, const Function& function) {
  switch (type) {
    case DataType::kFloat32:
      return function(static_cast<float*>(nullptr));
    case DataType::kFloat64:
      return function(static_cast<double*>(nullptr));
    case DataType::kInt32:
      return function(static_cast<int32_t*>(nullptr));
    case DataType::kInt64:
      return function(static_cast<int64_t*>(nullptr));
    case DataType::kUint8:
      return function(static_cast<uint8_t*>(nullptr));
    case DataType::kFloat16:
      return function(static_cast<Float16*>(nullptr));
    case DataType::kBfloat16:
      return function(static_cast<Bfloat16*>(nullptr));
    case DataType::kBool:
      return function(static_cast<Bool*>(nullptr));
  }
}

template <template <typename> class Operation>
HEARTH_INLINE void Into(DataType type, void* into, const void* from, size_t count) {
  WithType(type, [&](auto* typed) HEARTH_INLINE_LAMBDA {
    using T = std::remove_pointer_t<decltype(typed)>;
    auto* __restrict a = static_cast<std::byte*>(into);
    const auto* __restrict b = static_cast<const std::byte*>(from);
    for (size_t i = 0; i < count; ++i) {
      Save(a, i, Apply<T, Operation>(Load<T>(a, i), Load<T>(b, i)));
    }
  });
}

// Writes the result to both buffers while it is in a register, which saves a pass over the memory.
template <template <typename> class Operation>
HEARTH_INLINE void Both(DataType type, void* first, void* second, size_t count) {
  WithType(type, [&](auto* typed) HEARTH_INLINE_LAMBDA {
    using T = std::remove_pointer_t<decltype(typed)>;
    auto* __restrict a = static_cast<std::byte*>(first);
    auto* __restrict b = static_cast<std::byte*>(second);
    for (size_t i = 0; i < count; ++i) {
      const T value = Apply<T, Operation>(Load<T>(a, i), Load<T>(b, i));
      Save(a, i, value);
      Save(b, i, value);
    }
  });
}

template <typename Half, typename Function>
HEARTH_INLINE void ForEach(void* floats, const void* halves, size_t count,
                           const Function& function) {
  const auto* __restrict from = static_cast<const std::byte*>(halves);
  auto* __restrict into = static_cast<std::byte*>(floats);
  for (size_t i = 0; i < count; ++i) {
    Save(into, i, function(Load<float>(into, i), ToFloat(Load<Half>(from, i))));
  }
}

}  // namespace

HEARTH_FOR_EACH_CPU void Combine(Arithmetic how, void* into, const void* from, size_t count) {
  switch (how.op) {
    case Op::kSum:
    case Op::kMean:
      return Into<Sum>(how.type, into, from, count);
    case Op::kMin:
      return Into<Min>(how.type, into, from, count);
    case Op::kMax:
      return Into<Max>(how.type, into, from, count);
  }
}

HEARTH_FOR_EACH_CPU void CombineBoth(Arithmetic how, void* first, void* second, size_t count) {
  switch (how.op) {
    case Op::kSum:
    case Op::kMean:
      return Both<Sum>(how.type, first, second, count);
    case Op::kMin:
      return Both<Min>(how.type, first, second, count);
    case Op::kMax:
      return Both<Max>(how.type, first, second, count);
  }
}

HEARTH_FOR_EACH_CPU void Divide(DataType type, void* data, size_t count, int divisor) {
  WithType(type, [&](auto* typed) HEARTH_INLINE_LAMBDA {
    using T = std::remove_pointer_t<decltype(typed)>;
    if constexpr (!std::is_same_v<T, Bool>) {
      auto* values = static_cast<std::byte*>(data);
      using Value = decltype(Open(T{}));
      // A uint8 cannot represent every divisor, so the division is done in a wider type.
      using Wide = std::conditional_t<std::is_integral_v<Value>, int64_t, Value>;
      for (size_t i = 0; i < count; ++i) {
        const Wide quotient =
            static_cast<Wide>(Open(Load<T>(values, i))) / static_cast<Wide>(divisor);
        Save(values, i, Store<T>(static_cast<Value>(quotient)));
      }
    }
  });
}

HEARTH_FOR_EACH_CPU void Narrow(DataType wire, void* into, const void* from, size_t count) {
  auto* __restrict halves = static_cast<std::byte*>(into);
  const auto* __restrict floats = static_cast<const std::byte*>(from);
  if (wire == DataType::kFloat16) {
    for (size_t i = 0; i < count; ++i) Save(halves, i, ToFloat16(Load<float>(floats, i)));
  } else {
    for (size_t i = 0; i < count; ++i) Save(halves, i, ToBfloat16(Load<float>(floats, i)));
  }
}

HEARTH_FOR_EACH_CPU void Widen(DataType wire, void* into, const void* from, size_t count) {
  const auto replace = [](float, float value) HEARTH_INLINE_LAMBDA { return value; };
  if (wire == DataType::kFloat16) return ForEach<Float16>(into, from, count, replace);
  ForEach<Bfloat16>(into, from, count, replace);
}

HEARTH_FOR_EACH_CPU void AddWidened(DataType wire, void* into, const void* from, size_t count) {
  const auto add = [](float sum, float value) HEARTH_INLINE_LAMBDA { return sum + value; };
  if (wire == DataType::kFloat16) return ForEach<Float16>(into, from, count, add);
  ForEach<Bfloat16>(into, from, count, add);
}

}  // namespace hearth::collective
