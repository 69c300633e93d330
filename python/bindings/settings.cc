// The table of settings, for Python's flags and Config.
#include "hearth/settings/settings.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <variant>

#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

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
    const bool is_number = std::holds_alternative<int settings::Settings::*>(setting.field);
    row["least"] = is_number ? nb::cast(setting.least) : nb::none();
    row["most"] = is_number ? nb::cast(setting.most) : nb::none();
    row["must_be"] = setting.must_be;
    row["allows"] = setting.allows ? nb::cpp_function(setting.allows) : nb::none();
    std::visit([&](auto field) { row["default"] = defaults.*field; }, setting.field);
    table.append(row);
  }
  return table;
}

}  // namespace

void RegisterSettings(nb::module_& m) {
  m.def("settings", &SettingsTable,
        "The settings of a run, as a list of dicts: name (in jobs and Config), flag (of "
        "CaffeOnSpark, or empty), default, help (empty: no effect yet), values (allowed for a "
        "text), least and most (of a number, else None), must_be and allows (a further check of a "
        "text, or None).");
  m.def(
      "invalid_row_limit",
      [](const std::string& text) {
        const auto limit = settings::ParseInvalidRowLimit(text).value();
        return nb::make_tuple(limit.rows, limit.fraction);
      },
      "text"_a,
      "max_bad_records as (rows, fraction); -1: any number. The text must be one that the setting "
      "allows.");
}

}  // namespace hearth::bindings
