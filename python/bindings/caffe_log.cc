// hearth.native._caffe: the engine's log lines on stderr.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "caffe_module.h"
#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/log_level.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

void SetLogLevel(int level) {
  Require(level >= 0, ErrorCode::kInvalidArgument, "the log level {} is not 0 (all) or above",
          level);
  log::SetLeastLevel(level == 0   ? log::Level::kInfo
                     : level == 1 ? log::Level::kWarning
                                  : log::Level::kError);
}

}  // namespace

void RegisterLog(nb::module_& m) {
  m.def("set_log_level", SetLogLevel, "level"_a,
        "Sets the minimum level that is logged: 0 information, 1 warnings, 2 and above errors.");
  m.def(
      "log", [](const std::string& message) { log::Info("{}", message); }, "message"_a,
      "Logs one line.");
}

}  // namespace hearth::bindings
