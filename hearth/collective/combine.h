// The arithmetic of reductions, vectorised for the machine it runs on.
#pragma once

#include <cstddef>

#include "hearth/collective/data_type.h"

namespace hearth::collective {

struct Arithmetic {
  DataType type = DataType::kFloat32;
  Op op = Op::kSum;
};

// into[i] = into[i] op from[i]. The ranges do not overlap. Integer sums wrap around.
void Combine(Arithmetic how, void* into, const void* from, size_t count);

// first[i] = second[i] = first[i] op second[i].
void CombineBoth(Arithmetic how, void* first, void* second, size_t count);

}  // namespace hearth::collective
