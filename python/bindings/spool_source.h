// Consumers for measurements and tests: they read rows as a trainer does and access the values.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <utility>

#include "hearth/ring/ring_reader.h"

namespace hearth::bindings {

// Reads to the next mark or the end and touches each cache line. Returns (rows, bytes).
std::pair<int64_t, int64_t> DrainRing(ring::RingReader& ring, double timeout_s);

// Defines SpoolSource, whose drain_epoch() simulates a trainer.
void DefineSpoolSource(nanobind::module_& m);

}  // namespace hearth::bindings
