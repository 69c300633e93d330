// Consumers for measurements and tests: they take rows as a trainer does and look at the values.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <utility>

#include "hearth/ring/ring_reader.h"

namespace hearth::bindings {

// Reads to the next mark or the end, touching each cache line; (rows, bytes of images).
std::pair<int64_t, int64_t> DrainRing(ring::RingReader& ring, double timeout_s);

// The class SpoolSource, whose drain_epoch() stands for a trainer.
void DefineSpoolSource(nanobind::module_& m);

}  // namespace hearth::bindings
