// hearth.native._caffe: Datum records of a LevelDB, whose library is linked into the engine.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "caffe_module.h"
#include "gil.h"
#include "hearth/caffe/data/database/leveldb_rows.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using caffe::DatumRange;

// Keys may contain any bytes, so they are not str in Python.
std::string Text(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

nb::object Bytes(const std::string& text) { return nb::bytes(text.data(), text.size()); }

// Returns (first key, end key or None, count or None) for each range.
nb::tuple Divide(const std::string& path, uint64_t parts) {
  nb::list divided;
  for (const DatumRange& range : WithoutGil([&] { return caffe::DivideLevelDb(path, parts); })) {
    const nb::object end = range.end_key ? Bytes(*range.end_key) : nb::none();
    const nb::object count = range.count ? nb::object(nb::int_(*range.count)) : nb::none();
    divided.append(nb::make_tuple(Bytes(range.first_key), end, count));
  }
  return nb::tuple(divided);
}

std::unique_ptr<caffe::DatumRows> Read(const std::string& path, const nb::tuple& range) {
  DatumRange wanted{Text(nb::cast<nb::bytes>(range[0])), std::nullopt, std::nullopt};
  if (!range[1].is_none()) wanted.end_key = Text(nb::cast<nb::bytes>(range[1]));
  if (!range[2].is_none()) wanted.count = nb::cast<uint64_t>(range[2]);
  const ReleasedGil released;
  return caffe::ReadLevelDb(path, std::move(wanted));
}

}  // namespace

void RegisterLevelDb(nb::module_& m) {
  m.def("divide_leveldb", &Divide, "path"_a, "parts"_a,
        "Splits a LevelDB's folder into ranges, each (first key, exclusive end key or None, number "
        "of records or None). Raises HearthError.");
  m.def("leveldb_rows", &Read, "path"_a, "range"_a,
        nb::sig("def leveldb_rows(path: str, range: tuple) -> hearth.native._core.DatumRows"),
        "The records of a range of divide_leveldb(). Raises HearthError.");
}

}  // namespace hearth::bindings
