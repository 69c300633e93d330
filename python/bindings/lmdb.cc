// hearth.native._core: Datum records of an LMDB as Arrow batches.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <string>
#include <utility>

#include "batch.h"
#include "gil.h"
#include "hearth/caffe/data/database/datum_rows.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using caffe::DatumBatch;
using caffe::DatumRows;

nb::tuple DivideRecords(const std::string& path, uint64_t parts) {
  const auto divided = WithoutGil([&] { return caffe::DivideLmdb(path, parts); });
  nb::list keys;
  for (const std::string& key : divided.first_keys) keys.append(nb::bytes(key.data(), key.size()));
  return nb::make_tuple(divided.records, nb::tuple(keys));
}

std::unique_ptr<DatumRows> Open(const std::string& path, const nb::bytes& first_key,
                                uint64_t count) {
  const std::string first(first_key.c_str(), first_key.size());
  const ReleasedGil released;
  return std::make_unique<DatumRows>(path, first, count);
}

nb::tuple Cut(const std::string& path, size_t wanted) {
  const auto cuts = WithoutGil([&] { return caffe::CutLmdb(path, wanted); });
  nb::list parts;
  for (const caffe::LmdbSubtree& part : cuts.parts) {
    parts.append(nb::make_tuple(nb::bytes(part.first_key.data(), part.first_key.size()),
                                part.page * cuts.page_size));
  }
  return nb::make_tuple(cuts.records, nb::tuple(parts));
}

std::unique_ptr<DatumRows> OpenRange(const std::string& path, const nb::bytes& first_key,
                                     const nb::object& end_key) {
  caffe::DatumRange range;
  range.first_key.assign(first_key.c_str(), first_key.size());
  // There may be no record with this key, because cut_lmdb() reads keys from inner pages.
  range.or_behind = true;
  if (!end_key.is_none()) {
    const auto end = nb::cast<nb::bytes>(end_key);
    range.end_key.emplace(end.c_str(), end.size());
  }
  const ReleasedGil released;
  return std::make_unique<DatumRows>(path, std::move(range));
}

// Wraps a pointer to const, which nanobind cannot hold directly.
struct PythonDatums {
  std::shared_ptr<const DatumBatch> batch;
};

nb::object NextRecords(DatumRows& rows) {
  auto batch = WithoutGil([&] { return rows.Next(); });
  if (batch == nullptr) return nb::none();
  return nb::cast(PythonDatums{std::move(batch)});
}

nb::tuple Export(const PythonDatums& datums, nb::handle) {
  auto schema = std::make_unique<ArrowSchema>();
  auto array = std::make_unique<ArrowArray>();
  DatumBatch::Export(datums.batch, schema.get(), array.get());
  return Capsules(std::move(schema), std::move(array));
}

}  // namespace

void RegisterLmdb(nb::module_& m) {
  m.def("divide_lmdb", DivideRecords, "path"_a, "parts"_a,
        "(records, first key of each part) of an LMDB's data file, by path or URI, "
        "in parts that differ by at most one record. Raises HearthError.");
  m.def(
      "cut_lmdb", Cut, "path"_a, "wanted"_a,
      "(records, ((first key of a part, its approximate byte offset), ...)): `wanted` to twice as "
      "many parts of about equal size, found without reading the records; none if the file is "
      "too small for that. Raises HearthError.");
  m.def("lmdb_rows", OpenRange, "path"_a, "first_key"_a, "end_key"_a.none(),
        nb::sig("def lmdb_rows(path: str, first_key: bytes, end_key: bytes | None) -> DatumRows"),
        "The records from `first_key` on, before `end_key`. Raises HearthError.");
  nb::class_<PythonDatums>(m, "DatumBatch",
                           "Records for pyarrow.record_batch(); `data` is a binary view "
                           "of the file.")
      .def("__arrow_c_array__", &Export, "requested_schema"_a = nb::none())
      .def_prop_ro("num_rows", [](const PythonDatums& self) { return self.batch->rows(); });
  nb::class_<DatumRows>(m, "DatumRows",
                        "A range of Datum records of an LMDB's data file. Not thread-safe.")
      .def(nb::new_(&Open), "path"_a, "first_key"_a, "count"_a,
           "`count` records from `first_key` on. Raises HearthError.")
      .def_prop_ro("fetched", &DatumRows::fetched, "Bytes read from a remote file system.")
      .def("next", &NextRecords,
           "The next rows, for pyarrow.record_batch(); None at the end. Raises HearthError if "
           "the file is damaged; a record that is not a Datum becomes nulls.");
}

}  // namespace hearth::bindings
