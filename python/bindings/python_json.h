// Converts between JSON values and Python objects. Requires the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include "hearth/rendezvous/frame.h"

namespace hearth::bindings {

nanobind::object ToPython(const rendezvous::Json& value);

// Accepts None, bool, int, float, str, list, tuple, and dict with str keys. Replaces text that is
// not valid UTF-8 by "?". Raises ValueError for other types, for numbers that a message cannot
// represent (NaN, infinity, integers of more than 64 bits), and for values nested deeper than
// receivers allow.
rendezvous::Json FromPython(nanobind::handle object);

}  // namespace hearth::bindings
