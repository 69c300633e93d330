// hearth.native._core: the Datum records of an LMDB as Arrow batches.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <string>
#include <utility>

#include "feed_batch.h"
#include "gil.h"
#include "hearth/caffe/data/database/datum_rows.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using caffe::DatumRows;

nb::tuple Divide(const std::string& path, uint64_t parts) {
  caffe::LmdbParts divided;
  {
    const ReleasedGil released;
    divided = caffe::DivideLmdb(path, parts);
  }
  nb::list keys;
  for (const std::string& key : divided.first_keys) keys.append(nb::bytes(key.data(), key.size()));
  return nb::make_tuple(divided.records, nb::tuple(keys));
}

std::unique_ptr<DatumRows> Open(const std::string& path, const nb::bytes& first_key,
                                uint64_t count) {
  return std::make_unique<DatumRows>(path, std::string(first_key.c_str(), first_key.size()), count);
}

nb::object Next(DatumRows& rows) {
  std::shared_ptr<const feed::BatchView> batch;
  {
    const ReleasedGil released;
    batch = rows.Next();
  }
  if (batch == nullptr) return nb::none();
  return nb::cast(PythonBatch(std::move(batch)));
}

}  // namespace

void RegisterLmdb(nb::module_& m) {
  m.def("divide_lmdb", Divide, "path"_a, "parts"_a,
        "(records, the key that each part begins with) of an LMDB's data file, whose parts differ "
        "by at most one record. Raises HearthError.");
  nb::class_<DatumRows>(m, "DatumRows",
                        "Some Datum records of an LMDB's data file. One thread uses it.")
      .def(nb::new_(&Open), "path"_a, "first_key"_a, "count"_a,
           "`count` records from `first_key` on. Raises HearthError.")
      .def("next", &Next,
           "The next rows, for pyarrow.record_batch(); None at the end. Raises HearthError where "
           "the file is damaged; a record that is no Datum has nulls.");
}

}  // namespace hearth::bindings
