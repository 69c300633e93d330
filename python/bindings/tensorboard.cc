// Metrics of a training: writes and reads TensorBoard event files.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "gil.h"
#include "hearth/tensorboard/event_reader.h"
#include "hearth/tensorboard/run_record.h"
#include "module.h"
#include "python_json.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

nb::list PointsToPython(const std::vector<tensorboard::Point>& points) {
  nb::list list;
  for (const tensorboard::Point& point : points) {
    const nb::object value =
        point.text.empty()
            ? nb::object(nb::float_(point.value))
            : nb::steal(PyUnicode_DecodeUTF8(
                  point.text.data(), static_cast<Py_ssize_t>(point.text.size()), "replace"));
    list.append(nb::make_tuple(point.at, point.step, point.tag, value));
  }
  return list;
}

nb::tuple Take(tensorboard::RunRecord& record, nb::handle event, double now) {
  const rendezvous::Json value = FromPython(event);
  const auto change = WithoutGil([&] { return record.Take(value, now); });
  const nb::object back = change.back_to ? nb::object(nb::int_(*change.back_to)) : nb::none();
  return nb::make_tuple(back, PointsToPython(change.points));
}

}  // namespace

void RegisterBoard(nb::module_& m) {
  nb::class_<tensorboard::RunRecord>(
      m, "RunRecord",
      "The metrics in a training's events, by name and iteration, also written to an "
      "event file of TensorBoard. Thread-safe.")
      .def(nb::init<const std::string&, double>(), "folder"_a, "now"_a,
           "`folder`: path or URI of the event file's folder; empty: no file.")
      .def("take", &Take, "event"_a, "now"_a,
           "(iteration that the training rewound to, or None; the event's points as (seconds, "
           "step, tag, number or text)).")
      .def("finish", &tensorboard::RunRecord::Finish, ReleaseGil(), "Completes the file.")
      .def_prop_ro("path", &tensorboard::RunRecord::path,
                   "Path of the file; empty if there is none.");
  m.def(
      "read_events",
      [](const nb::bytes& data, const std::string& name) {
        return PointsToPython(tensorboard::ReadEvents({data.c_str(), data.size()}, name));
      },
      "data"_a, "name"_a,
      "The points of an event file's bytes, as RunRecord.take() returns them; `name` is for error "
      "messages.");
}

}  // namespace hearth::bindings
