// Arithmetic of reductions, vectorised for the CPU on which it runs. Memory need not be aligned.
// Any thread may call the functions; they cannot fail.
#pragma once

#include <cstddef>

#include "hearth/collective/operation/data_type.h"

namespace hearth::collective {

// A reduction operator and the type of its values.
struct Arithmetic {
  DataType type = DataType::kFloat32;
  Op op = Op::kSum;
};

// into[i] = into[i] op from[i]; kMean adds, like kSum. The ranges do not overlap. 16-bit floats are
// combined as float32 and rounded.
void Combine(Arithmetic how, void* into, const void* from, size_t count);

// first[i] = second[i] = first[i] op second[i].
void CombineBoth(Arithmetic how, void* first, void* second, size_t count);

// data[i] = data[i] / divisor; integers round towards zero, bools are unchanged.
void Divide(DataType type, void* data, size_t count, int divisor);

// Convert between float32 and a 16-bit type: `wire` is kFloat16 or kBfloat16.
void Narrow(DataType wire, void* into, const void* from, size_t count);
void Widen(DataType wire, void* into, const void* from, size_t count);
// into[i] += from[i], as float32.
void AddWidened(DataType wire, void* into, const void* from, size_t count);

}  // namespace hearth::collective
