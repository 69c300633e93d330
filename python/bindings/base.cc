// Warnings and timeline of the core, for Python.
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

// The sink does not call Python, because the logging thread may hold a lock for which the thread
// with the GIL waits.
void CopyWarningsTo(int fd) {
  log::SetSink([fd](const log::Record& record) {
    if (record.level == log::Level::kInfo) return;
    const std::string line = std::string(record.text) + "\n";
    // Drops the line if the reader is too slow, because the log contains it anyway.
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
        "Also writes each warning of the core to this descriptor, one per line; it "
        "must be non-blocking, and stays open.");
  m.def("timeline_is_on", &timeline::On,
        "Whether this process writes a timeline (HEARTH_TIMELINE=FOLDER).");
  m.def(
      "timeline_add",
      [](const std::string& name, double begin_s, double end_s) {
        timeline::Add({"python", name, At(begin_s), At(end_s)});
      },
      "name"_a, "begin_s"_a, "end_s"_a,
      "An event on the calling thread's track; times as of time.monotonic().");
  m.def(
      "timeline_name_process", [](const std::string& name) { timeline::NameProcess(name); },
      "name"_a, "Names this process in the timeline; only the first call has an effect.");
}

}  // namespace hearth::bindings
