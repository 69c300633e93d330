// hearth.native._core.TfRecordReader: reads TFRecord files of tf.train.Example into columns.
#include "hearth/formats/tfrecord.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "gil.h"
#include "hearth/base/error.h"
#include "hearth/formats/crc32c.h"
#include "hearth/formats/tf_example.h"
#include "hearth/storage/file_system.h"
#include "hearth/storage/uri.h"
#include "module.h"
#include "new_array.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using formats::ExampleColumns;
using formats::FeatureColumn;
using formats::FeatureKind;

// Bytes of records per batch: a few images or many numbers. The next batch reuses the memory.
constexpr size_t kBatchBytes = size_t{4} << 20;
// Limit of features per example. More features indicate a damaged file, and each would need a
// hundred bytes of memory.
constexpr size_t kMaxFeatures = size_t{1} << 16;

FeatureKind ParseKind(const std::string& name) {
  if (name == "bytes") return FeatureKind::kBytes;
  if (name == "float") return FeatureKind::kFloat;
  if (name == "int64") return FeatureKind::kInt64;
  Throw(ErrorCode::kInvalidArgument, "'{}' is not a kind of feature: bytes, float or int64", name);
}

std::string KindText(FeatureKind kind) {
  constexpr const char* kNames[] = {"", "bytes", "float", "int64"};
  return kNames[static_cast<int>(kind)];
}

template <typename Container>
nb::object VectorToNumpy(Container values) {
  using Value = typename Container::value_type;
  // NumPy uses uint8 for arrays of bytes.
  using Number = std::conditional_t<std::is_same_v<Value, char>, uint8_t, Value>;
  const size_t size = values.size();
  return nb::cast(
      ArrayOver<nb::ndarray<nb::numpy, Number, nb::ndim<1>>>(std::move(values), {size}));
}

nb::dict ToPython(FeatureColumn&& column) {
  nb::dict parts;
  if (column.kind == FeatureKind::kFloat) parts["values"] = VectorToNumpy(std::move(column.floats));
  if (column.kind == FeatureKind::kInt64) parts["values"] = VectorToNumpy(std::move(column.ints));
  if (column.kind == FeatureKind::kBytes) {
    parts["values"] = VectorToNumpy(std::move(column.bytes));
    parts["value_offsets"] = VectorToNumpy(std::move(column.byte_offsets));
  }
  parts["row_offsets"] = VectorToNumpy(std::move(column.row_offsets));
  parts["present"] = VectorToNumpy(std::move(column.present));
  return parts;
}

// A remote file, read sequentially.
class RemoteSource : public formats::ByteSource {
 public:
  explicit RemoteSource(const std::string& uri) : file_(storage::For(uri).Open(uri)) {}

  size_t Read(char* data, size_t size) override {
    const size_t count = file_->ReadAt(offset_, data, size);
    offset_ += count;
    return count;
  }

 private:
  std::unique_ptr<storage::InputFile> file_;
  uint64_t offset_ = 0;
};

std::unique_ptr<formats::ByteSource> OpenSource(const std::string& path) {
  const ReleasedGil released;  // may access a server
  if (const auto local = storage::LocalPathOf(path)) return formats::OpenFileSource(*local);
  return std::make_unique<RemoteSource>(path);
}

// Reads the records of a file, or of a bytes object, which the reader keeps alive.
class PythonReader {
 public:
  PythonReader(const std::string& path, uint64_t largest)
      : records_(OpenSource(path), path, largest) {}
  PythonReader(nb::bytes data, const std::string& name, uint64_t largest)
      : data_(std::move(data)),
        records_(formats::OpenMemorySource({data_.c_str(), data_.size()}), name, largest) {}

  nb::object Read(const std::vector<std::pair<std::string, std::string>>& columns,
                  int64_t max_rows) {
    std::vector<FeatureColumn> wanted;
    for (const auto& [name, kind] : columns) {
      wanted.push_back({.name = name, .kind = ParseKind(kind)});
    }
    ExampleColumns rows(std::move(wanted));
    {
      const ReleasedGil released;
      size_t bytes = 0;
      while (rows.rows() < max_rows && bytes < kBatchBytes) {
        const auto record = records_.Next();
        if (!record) break;
        rows.Add(*record);
        bytes += record->size();
      }
    }
    if (rows.rows() == 0) return nb::none();
    nb::dict found;
    for (FeatureColumn& column : rows.columns()) {
      const nb::str name(column.name.c_str(), column.name.size());
      found[name] = ToPython(std::move(column));
    }
    return nb::make_tuple(rows.rows(), found);
  }

  std::vector<std::vector<std::tuple<std::string, std::string, int64_t>>> Scan(int64_t max_rows) {
    const ReleasedGil released;
    std::vector<std::vector<std::tuple<std::string, std::string, int64_t>>> rows;
    while (static_cast<int64_t>(rows.size()) < max_rows) {
      const auto record = records_.Next();
      if (!record) break;
      auto& row = rows.emplace_back();
      formats::ForEachFeature(*record, [&](std::string_view name, FeatureKind kind, int64_t count) {
        Require(row.size() < kMaxFeatures, ErrorCode::kDataLoss,
                "an example has more than {} features: it is malformed", kMaxFeatures);
        row.emplace_back(name, KindText(kind), count);
      });
    }
    return rows;
  }

 private:
  nb::bytes data_ = nb::bytes("", 0);
  formats::TfRecordReader records_;
};

}  // namespace

void RegisterTfRecord(nb::module_& m) {
  nb::class_<PythonReader>(m, "TfRecordReader",
                           "Examples of a TFRecord file, plain or gzip. Not thread-safe.")
      .def(nb::init<const std::string&, uint64_t>(), "path"_a,
           "largest_record_bytes"_a = formats::kLargestRecordBytes,
           "Reads a file, by path or URI. A record above the size limit is an error.")
      .def(nb::init<nb::bytes, const std::string&, uint64_t>(), "data"_a, "name"_a,
           "largest_record_bytes"_a = formats::kLargestRecordBytes,
           "Reads bytes; `name` is for error messages.")
      .def("read", &PythonReader::Read, "columns"_a, "max_rows"_a,
           "Up to max_rows examples, or 4 MiB of them, as (rows, {name: {values, value_offsets "
           "(bytes only), row_offsets, present}}); None at the end. `columns`: (name, 'bytes' | "
           "'float' | 'int64') each.")
      .def("scan", &PythonReader::Scan, "max_rows"_a,
           "Up to max_rows examples as lists of (name, kind, number of values).");
  RegisterTfRecordWriter(m);
  m.def(
      "masked_crc32c",
      [](const nb::bytes& data) {
        return formats::MaskedCrc32c({data.c_str(), data.size()});
      },
      "data"_a, "The checksum of a record's length or data.");
}

}  // namespace hearth::bindings
