// Records of mapped SequenceFiles, whose values a ring need not copy.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gil.h"
#include "hearth/formats/mapped_file.h"
#include "hearth/formats/sequence_records.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using formats::SequenceRecords;

class PythonRecords {
 public:
  PythonRecords(const std::string& path, uint64_t low, uint64_t high)
      : records_(formats::MappedFile::Open(path), low, high) {}

  static nb::object Next(nb::handle self, size_t most_records, size_t most_bytes) {
    auto& reader = nb::cast<PythonRecords&>(self);
    std::vector<SequenceRecords::Record> records;
    std::string views;
    {
      const ReleasedGil released;
      records = reader.records_.Next(most_records, most_bytes);
      views = formats::BinaryViews(records);
    }
    if (records.empty()) return nb::none();
    nb::list keys;
    for (const auto& [key, value] : records) keys.append(nb::bytes(key.data(), key.size()));
    const char* begin = records.front().value.data();
    const auto& last = records.back().value;
    const size_t shape[] = {static_cast<size_t>(last.data() + last.size() - begin)};
    nb::object values = nb::cast(nb::ndarray<nb::memview, const uint8_t, nb::ndim<1>>(
        reinterpret_cast<const uint8_t*>(begin), 1, shape, self));
    return nb::make_tuple(keys, nb::bytes(views.data(), views.size()), values);
  }

 private:
  SequenceRecords records_;
};

bool Reads(const nb::bytes& head) { return SequenceRecords::Reads({head.c_str(), head.size()}); }

}  // namespace

void RegisterSequenceRecords(nb::module_& m) {
  nb::class_<PythonRecords>(
      m, "SequenceRecords",
      "Records of a local SequenceFile between the first marks at or behind `low` and `high`. The "
      "file is mapped as long as this or a view of its values lives; of large values, "
      "RingWriter.write() sends where they lie. One thread.")
      .def(nb::init<const std::string&, uint64_t, uint64_t>(), "path"_a, "low"_a, "high"_a,
           ReleaseGil(),
           "Raises OSError, HearthError where it is no file or an empty one, ValueError where "
           "reads() is false of its begin.")
      .def("next", &PythonRecords::Next, "most_records"_a, "most_bytes"_a,
           nb::sig("def next(self, most_records: int, most_bytes: int) -> "
                   "tuple[list[bytes], bytes, memoryview] | None"),
           "The next keys, their values as Arrow's binary views, and the one buffer of these; None "
           "behind the last. Raises ValueError where the file is damaged.")
      .def_static("head_bytes", &SequenceRecords::HeadBytes, "How many bytes reads() has to see.")
      .def_static("reads", &Reads, "head"_a,
                  "Whether a file that begins so has BytesWritables and is not compressed.");
}

}  // namespace hearth::bindings
