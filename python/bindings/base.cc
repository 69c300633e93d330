// The core's warnings and timeline, for Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "hearth/base/log.h"
#include "hearth/base/timeline.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

// Not by calling Python: whoever logs may hold what a thread with Python's lock waits for.
void CopyWarningsTo(int fd) {
  log::SetSink([fd](const log::Record& record) {
    if (record.level == log::Level::kInfo) return;
    const std::string line = std::string(record.text) + "\n";
    // Where nobody reads fast enough a line is left out: the log has it.
    (void)!::write(fd, line.data(), line.size());
  });
}

timeline::Clock::time_point At(double seconds) {
  const auto since = std::chrono::duration<double>(seconds);
  return timeline::Clock::time_point(std::chrono::duration_cast<timeline::Clock::duration>(since));
}

}  // namespace

void RegisterBase(nb::module_& m) {
  m.def("copy_warnings_to", &CopyWarningsTo, "fd"_a,
        "From now on each warning of the core is also written to this descriptor, as a line; it "
        "must not block, and stays open.");
  m.def("timeline_is_on", &timeline::On,
        "Whether this process writes a timeline, as HEARTH_TIMELINE=FOLDER asks it to.");
  m.def(
      "timeline_add",
      [](const std::string& name, double begin_s, double end_s) {
        timeline::Add({"python", name, At(begin_s), At(end_s)});
      },
      "name"_a, "begin_s"_a, "end_s"_a,
      "An event on the calling thread's track; times as time.monotonic() gives them.");
  m.def(
      "timeline_name_process", [](const std::string& name) { timeline::NameProcess(name); },
      "name"_a, "How this process is called in the timeline; the first name stays.");
}

}  // namespace hearth::bindings
