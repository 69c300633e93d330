#include "dataset_arrays.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "gil.h"
#include "hearth/base/error.h"
#include "hearth/dataset/convert_numbers.h"
#include "hearth/dataset/copy_rows.h"
#include "hearth/dataset/gather.h"
#include "hearth/dataset/order/epoch_order.h"
#include "limited_api.h"
#include "new_array.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using batch::ColumnType;
using dataset::GatheredColumn;

std::string_view DtypeOf(const GatheredColumn& column) {
  return batch::ColumnTypeName(column.number_type());  // NumPy uses the same names
}

// Returns the type of the result if it differs from the column's type, else nullopt.
std::optional<ColumnType> OtherType(const GatheredColumn& column, nb::handle out_dtype) {
  if (out_dtype.is_none()) return std::nullopt;
  const nb::object dtype = nb::module_::import_("numpy").attr("dtype")(out_dtype);
  const ColumnType type = dataset::NumberTypeOf(nb::cast<std::string>(dtype.attr("name")));
  if (type == column.number_type()) return std::nullopt;
  return type;
}

// Returns an array of the requested type, which `copy(memory)` fills without the GIL.
template <typename Copy>
nb::object FilledArray(const GatheredColumn& column, const std::vector<int64_t>& shape,
                       nb::handle out_dtype, Copy copy) {
  const std::optional<ColumnType> other = OtherType(column, out_dtype);
  const NewArray array(shape, other ? batch::ColumnTypeName(*other) : DtypeOf(column));
  WithoutGil([&] {
    if (!other) {
      copy(array.data());
      return;
    }
    const auto count = static_cast<int64_t>(array.bytes()) / GatheredColumn::NumberBytes(*other);
    // The values are gathered in the column's type first, because ConvertNumbers() checks the range
    // of all values.
    std::vector<std::byte> values(
        static_cast<size_t>(count * GatheredColumn::NumberBytes(column.number_type())));
    copy(values.data());
    dataset::ConvertNumbers({column.number_type(), *other, column.name()}, values.data(), count,
                            array.data());
  });
  return array.array();
}

nb::object NumberArray(const GatheredColumn& column, int64_t rows, nb::handle out_dtype) {
  return FilledArray(column, {rows}, out_dtype, [&](std::byte* to) { column.CopyNumbers(to); });
}

nb::object ListArray(const GatheredColumn& column, int64_t rows, nb::handle out_dtype) {
  const int64_t length = column.FirstLength();
  // The length is -1 if the first row is null; CopyLists() then throws.
  return FilledArray(column, {rows, std::max<int64_t>(0, length)}, out_dtype,
                     [&](std::byte* to) { column.CopyLists(length, to); });
}

nb::object RaggedArrays(const GatheredColumn& column, int64_t rows, nb::handle out_dtype) {
  nb::list arrays;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t length = column.LengthOf(row);
    if (length < 0) {
      arrays.append(nb::none());
      continue;
    }
    arrays.append(
        FilledArray(column, {length}, out_dtype, [&](std::byte* to) { column.CopyList(row, to); }));
  }
  return arrays;
}

nb::object Steal(PyObject* object) {
  if (object == nullptr) nb::raise_python_error();
  return nb::steal(object);
}

nb::object Texts(const GatheredColumn& column, int64_t rows) {
  nb::list texts;
  for (int64_t row = 0; row < rows; ++row) {
    const auto text = column.BytesOf(row);
    texts.append(text ? Steal(PyUnicode_DecodeUTF8(text->data(),
                                                   static_cast<Py_ssize_t>(text->size()), nullptr))
                      : nb::none());
  }
  return texts;
}

// Creates the objects with the GIL. If they are large, fills them without the GIL.
nb::object Binaries(const GatheredColumn& column, int64_t rows) {
  // It is not worth releasing the GIL to copy fewer bytes.
  constexpr size_t kMuch = 64 << 10;
  struct Copy {
    std::string_view from;
    char* to;
  };
  nb::list binaries;
  std::vector<Copy> copies;
  copies.reserve(static_cast<size_t>(rows));
  size_t bytes = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const auto value = column.BytesOf(row);
    if (!value) {
      binaries.append(nb::none());
      continue;
    }
    const nb::object binary =
        Steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(value->size())));
    // Empty values are skipped, because Python shares one object for all empty bytes, which must
    // not be written.
    if (!value->empty()) copies.push_back({*value, PyBytes_AS_STRING(binary.ptr())});
    bytes += value->size();
    binaries.append(binary);
  }
  const auto fill = [&copies] {
    for (const Copy& copy : copies) std::memcpy(copy.to, copy.from.data(), copy.from.size());
    return true;
  };
  bytes >= kMuch ? WithoutGil(fill) : fill();
  return binaries;
}

}  // namespace

nb::object PythonRows::Gather(const std::string& name, nb::handle out_dtype, bool ragged) const {
  const GatheredColumn column(rows_, name);
  switch (column.kind()) {
    case GatheredColumn::Kind::kNumbers:
      return NumberArray(column, count(), out_dtype);
    case GatheredColumn::Kind::kLists:
      return ragged ? RaggedArrays(column, count(), out_dtype)
                    : ListArray(column, count(), out_dtype);
    case GatheredColumn::Kind::kBytes:
      return column.is_text() ? Texts(column, count()) : Binaries(column, count());
    case GatheredColumn::Kind::kOther:
      break;
  }
  return nb::none();
}

PythonBatch PythonRows::Batch(const std::optional<std::vector<std::string>>& columns) const {
  return PythonBatch(WithoutGil([&] { return dataset::CopyRows(*rows_, columns); }));
}

nb::object PythonRows::Indices() const {
  const NewArray array({count()}, "int64");
  if (array.bytes() > 0) std::memcpy(array.data(), rows_->indices.data(), array.bytes());
  return array.array();
}

nb::object PythonRows::Ids() const {
  const NewArray array({count()}, "uint64");
  auto* ids = reinterpret_cast<uint64_t*>(array.data());
  for (const auto& [partition, row] : dataset_->IdsOf(rows_->indices)) {
    *ids++ = dataset::RowSeed(seed_, epoch_, partition, row);
  }
  return array.array();
}

void DefineSelectedRows(nb::module_& m) {
  nb::class_<PythonRows>(m, "SelectedRows",
                         "Selected rows of a dataset, which are not copied until they are "
                         "gathered.")
      .def_prop_ro("count", &PythonRows::count)
      .def("__len__", &PythonRows::count)
      .def("gather", &PythonRows::Gather, "name"_a, "out_dtype"_a = nb::none(), "ragged"_a = false,
           "Copies a column: an array [rows] of numbers, [rows, length] of lists of one "
           "length (with `ragged` a list of arrays, None for a null), a list of str or bytes. A "
           "null becomes NaN for floats, None for str and bytes, else a ValueError. Returns None "
           "for types that only pyarrow supports (record_batch). `out_dtype`: another type for "
           "numbers; ValueError if a value is out of its range.")
      .def("record_batch", &PythonRows::Batch, "columns"_a = nb::none(),
           "A copy of the rows for pyarrow.record_batch(), of these columns or of all.")
      .def(
          "__arrow_c_array__",
          [](const PythonRows& self, nb::handle) { return self.Batch(std::nullopt).Export(); },
          "requested_schema"_a = nb::none())
      .def("indices", &PythonRows::Indices, "Each row's number in the rank's partitions, int64.")
      .def("ids", &PythonRows::Ids,
           "A random seed for each row in this epoch, uint64, which depends only on "
           "seed, epoch, partition and the row's number in it.");
}

}  // namespace hearth::bindings
