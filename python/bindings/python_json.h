// JSON values as Python objects and back, with the GIL held.
#pragma once

#include <nanobind/nanobind.h>

#include "hearth/rendezvous/frame.h"

namespace hearth::bindings {

nanobind::object ToPython(const rendezvous::Json& value);

// None, bool, int, float, str, list, tuple, and dict with keys of str. Of text, what UTF-8 does not
// have becomes "?". Raises ValueError for anything else, for numbers that JSON lacks (NaN, beyond
// 64 bits), and for what is nested deeper than the messages' readers allow.
rendezvous::Json FromPython(nanobind::handle object);

}  // namespace hearth::bindings
