// Classes MessageChannel and HandshakeTerms, for listeners and connections that Python serves.
#pragma once

#include <nanobind/nanobind.h>

namespace hearth::bindings {

void DefineMessageChannel(nanobind::module_& m);

}  // namespace hearth::bindings
