// hearth.native._caffe: runs commands of the hearth program in Python, for nets with Python layers.
// Also defines the entry point that the program calls in a process without Python (apps/hearth.cc).
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "apps/command_line.h"
#include "caffe_module.h"
#include "gil.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {

void RegisterProgram(nb::module_& m) {
  m.def("run_command_line", program::RunCommandLine, "arguments"_a, ReleaseGil(),
        "Runs a command of the hearth program; returns its exit status.");
}

}  // namespace hearth::bindings

// A C symbol, so that the program can look it up in the library by its name.
extern "C" __attribute__((visibility("default"))) int hearth_run_program(int argc, char** argv) {
  return hearth::program::RunCommandLine({argv + 1, argv + argc});
}
