// A training's figures: written as TensorBoard's event files, and read back.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "gil.h"
#include "hearth/board/event_reader.h"
#include "hearth/board/run_record.h"
#include "module.h"
#include "python_json.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

nb::list PointsToPython(const std::vector<board::Point>& points) {
  nb::list list;
  for (const board::Point& point : points) {
    const nb::object said =
        point.text.empty()
            ? nb::object(nb::float_(point.value))
            : nb::steal(PyUnicode_DecodeUTF8(
                  point.text.data(), static_cast<Py_ssize_t>(point.text.size()), "replace"));
    list.append(nb::make_tuple(point.at, point.step, point.tag, said));
  }
  return list;
}

nb::tuple Take(board::RunRecord& record, nb::handle event, double now) {
  const rendezvous::Json value = FromPython(event);
  board::RunRecord::Change change;
  {
    const ReleasedGil released;
    change = record.Take(value, now);
  }
  const nb::object back = change.back_to ? nb::object(nb::int_(*change.back_to)) : nb::none();
  return nb::make_tuple(back, PointsToPython(change.points));
}

void Finish(board::RunRecord& record) {
  const ReleasedGil released;  // a server may be asked
  record.Finish();
}

}  // namespace

void RegisterBoard(nb::module_& m) {
  nb::class_<board::RunRecord>(m, "RunRecord",
                               "What a training's events say, by name and iteration, and in an "
                               "event file of TensorBoard. Any thread.")
      .def(nb::init<const std::string&, double>(), "folder"_a, "now"_a,
           "`folder`: of the event file, a path or URI; no file where it is empty.")
      .def("take", &Take, "event"_a, "now"_a,
           "(iteration that the training went back to, or None; the event's points as (seconds, "
           "step, tag, number or text)).")
      .def("finish", &Finish, "Completes the file.")
      .def_prop_ro("path", &board::RunRecord::path, "Of the file; empty where there is none.");
  m.def(
      "read_events",
      [](const nb::bytes& data, const std::string& name) {
        return PointsToPython(board::ReadEvents({data.c_str(), data.size()}, name));
      },
      "data"_a, "name"_a,
      "The points of an event file's bytes, as RunRecord.take gives them; `name` is for messages.");
}

}  // namespace hearth::bindings
