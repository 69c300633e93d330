// The table of settings, for Python's flags and Config.
#include "hearth/settings/settings.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <variant>

#include "module.h"

namespace nb = nanobind;

namespace hearth::bindings {
namespace {

nb::list SettingsTable() {
  const settings::Settings defaults;
  nb::list table;
  for (const settings::Setting& setting : settings::Table()) {
    nb::dict row;
    row["name"] = setting.name;
    row["flag"] = setting.flag;
    row["help"] = setting.help;
    row["values"] = setting.values;
    row["most"] = setting.most;
    row["least"] = setting.least;
    std::visit([&](auto field) { row["default"] = defaults.*field; }, setting.field);
    table.append(row);
  }
  return table;
}

}  // namespace

void RegisterSettings(nb::module_& m) {
  m.def("settings", &SettingsTable,
        "The settings of a run, as a list of dicts: name (in jobs and Config), flag (of "
        "CaffeOnSpark, or empty), default, help (empty: no effect yet), values (allowed for a text"
        "), least and most (of a number).");
}

}  // namespace hearth::bindings
