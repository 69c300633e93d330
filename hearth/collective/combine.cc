#include "hearth/collective/combine.h"

#include <type_traits>

#include "hearth/base/for_each_cpu.h"

namespace hearth::collective {
namespace {

template <typename T>
struct Sum {
  static HEARTH_INLINE T Of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using Unsigned = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
      return a + b;
    }
  }
};

template <typename T>
struct Min {
  static HEARTH_INLINE T Of(T a, T b) { return b < a ? b : a; }
};

template <typename T>
struct Max {
  static HEARTH_INLINE T Of(T a, T b) { return a < b ? b : a; }
};

template <typename T, template <typename> class Operation>
HEARTH_INLINE void Into(void* into, const void* from, size_t count) {
  T* __restrict a = static_cast<T*>(into);
  const T* __restrict b = static_cast<const T*>(from);
  for (size_t i = 0; i < count; ++i) a[i] = Operation<T>::Of(a[i], b[i]);
}

template <typename T, template <typename> class Operation>
HEARTH_INLINE void Both(void* first, void* second, size_t count) {
  T* __restrict a = static_cast<T*>(first);
  T* __restrict b = static_cast<T*>(second);
  for (size_t i = 0; i < count; ++i) {
    const T value = Operation<T>::Of(a[i], b[i]);
    a[i] = value;
    b[i] = value;
  }
}

template <template <typename> class Operation>
HEARTH_INLINE void IntoAny(DataType type, void* into, const void* from, size_t count) {
  switch (type) {
    case DataType::kFloat32:
      return Into<float, Operation>(into, from, count);
    case DataType::kFloat64:
      return Into<double, Operation>(into, from, count);
    case DataType::kInt32:
      return Into<int32_t, Operation>(into, from, count);
    case DataType::kInt64:
      return Into<int64_t, Operation>(into, from, count);
    case DataType::kUint8:
      return Into<uint8_t, Operation>(into, from, count);
  }
}

template <template <typename> class Operation>
HEARTH_INLINE void BothAny(DataType type, void* first, void* second, size_t count) {
  switch (type) {
    case DataType::kFloat32:
      return Both<float, Operation>(first, second, count);
    case DataType::kFloat64:
      return Both<double, Operation>(first, second, count);
    case DataType::kInt32:
      return Both<int32_t, Operation>(first, second, count);
    case DataType::kInt64:
      return Both<int64_t, Operation>(first, second, count);
    case DataType::kUint8:
      return Both<uint8_t, Operation>(first, second, count);
  }
}

}  // namespace

HEARTH_FOR_EACH_CPU void Combine(Arithmetic how, void* into, const void* from, size_t count) {
  switch (how.op) {
    case Op::kSum:
      return IntoAny<Sum>(how.type, into, from, count);
    case Op::kMin:
      return IntoAny<Min>(how.type, into, from, count);
    case Op::kMax:
      return IntoAny<Max>(how.type, into, from, count);
  }
}

HEARTH_FOR_EACH_CPU void CombineBoth(Arithmetic how, void* first, void* second, size_t count) {
  switch (how.op) {
    case Op::kSum:
      return BothAny<Sum>(how.type, first, second, count);
    case Op::kMin:
      return BothAny<Min>(how.type, first, second, count);
    case Op::kMax:
      return BothAny<Max>(how.type, first, second, count);
  }
}

}  // namespace hearth::collective
