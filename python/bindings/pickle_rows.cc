// Reads pickled rows of plain data, either as Python objects, in two thirds of the time of Python's
// unpickler, or as arrays, without creating objects.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <array>
#include <bit>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "buffer_view.h"
#include "hearth/formats/pickle_guard.h"
#include "hearth/formats/pickle_reader.h"
#include "hearth/formats/pickled_columns.h"
#include "limited_api.h"
#include "module.h"
#include "new_array.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

// Maximum number of values in a dict's key. Hashing a tuple visits all its elements, which may be
// shared and nested without limit. Keys in rows are usually names, numbers, or tuples of a few of
// these.
constexpr int kMaxKeyParts = 1000;

// Returns true if hashing the key visits at most `*parts` values; decrements `*parts` for each
// value.
bool IsSmallKey(PyObject* key, int* parts) {
  if (--*parts < 0) return false;
  if (!PyTuple_CheckExact(key)) return true;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) {
    if (!IsSmallKey(PyTuple_GET_ITEM(key, i), parts)) return false;
  }
  return true;
}

// Caches Python floats of recurring values, such as pixels, counts and flags, to avoid most
// allocations. Used for one pickle at a time; stops looking up values if few of them recur.
// Requires the GIL.
class RecentFloats {
 public:
  // Returns a new reference; null if out of memory.
  PyObject* Get(double value) {
    if (misses_ > hits_ + kPatience) return PyFloat_FromDouble(value);
    const auto bits = std::bit_cast<uint64_t>(value);
    PyObject*& cached = Cache()[(bits * kMixer) >> kShift];
    if (cached != nullptr && std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(cached)) == bits) {
      ++hits_;
      return Py_NewRef(cached);
    }
    ++misses_;
    PyObject* made = PyFloat_FromDouble(value);
    if (made != nullptr) Py_XDECREF(std::exchange(cached, Py_NewRef(made)));
    return made;
  }

 private:
  static constexpr uint64_t kMixer = 0x9e3779b97f4a7c15;  // spreads differences over all bits
  static constexpr int kBits = 12;
  static constexpr int kShift = 64 - kBits;
  static constexpr int64_t kPatience = 2048;

  // Cached floats by hash; they persist across pickles and use at most 100 KB.
  static std::array<PyObject*, 1 << kBits>& Cache() {
    static std::array<PyObject*, 1 << kBits> cache = {};
    return cache;
  }

  int64_t hits_ = 0, misses_ = 0;
};

// Makes Python objects; each Value owns one reference. Requires the GIL.
class PythonBuilder {
 public:
  using Value = PyObject*;

  static Value None() { return Py_NewRef(Py_None); }
  static Value Bool(bool value) { return PyBool_FromLong(value); }
  static Value Int(int64_t value) { return PyLong_FromLongLong(value); }
  Value Float(double value) { return floats_.Get(value); }
  static Value Text(std::string_view text) {
    return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogatepass");
  }
  static Value Bytes(std::string_view bytes) {
    return PyBytes_FromStringAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size()));
  }
  static Value Dict() { return PyDict_New(); }
  static Value Again(Value value) { return Py_NewRef(value); }
  static bool Failed(Value value) { return value == nullptr; }
  static void Drop(Value value) { Py_DECREF(value); }

  static Value List(std::span<Value> items) {
    return Fill(PyList_New(std::ssize(items)), items,
                [](Value list, Py_ssize_t i, Value item) { PyList_SET_ITEM(list, i, item); });
  }
  static Value Tuple(std::span<Value> items) {
    return Fill(PyTuple_New(std::ssize(items)), items,
                [](Value tuple, Py_ssize_t i, Value item) { PyTuple_SET_ITEM(tuple, i, item); });
  }
  static bool Extend(Value list, std::span<Value> items) {
    bool good = PyList_CheckExact(list);
    for (Value item : items) good = good && PyList_Append(list, item) == 0;
    DropAll(items);
    return good;
  }
  static bool SetItems(Value dict, std::span<Value> items) {
    bool good = PyDict_CheckExact(dict);
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      int parts = kMaxKeyParts;
      good =
          good && IsSmallKey(items[i], &parts) && PyDict_SetItem(dict, items[i], items[i + 1]) == 0;
    }
    DropAll(items);
    return good;
  }

 private:
  RecentFloats floats_;

  // Moves the items into a new container and returns it. Returns null if the container could not be
  // allocated.
  template <typename Set>
  static Value Fill(Value container, std::span<Value> items, Set set) {
    if (container == nullptr) return DropAll(items);
    for (Py_ssize_t i = 0; i < std::ssize(items); ++i) set(container, i, items[i]);
    return container;
  }
  static Value DropAll(std::span<Value> items) {
    for (Value item : items) Py_DECREF(item);
    return nullptr;
  }
};

bool IsSound(nb::handle pickle) {
  const BufferView view(pickle);
  return formats::PickleIsSound(view.bytes());
}

nb::object LoadPlain(nb::handle pickle) {
  const BufferView view(pickle);
  PythonBuilder builder;
  formats::PickleReader reader(view.bytes(), &builder);
  const std::optional<PyObject*> value = reader.Read();
  PyErr_Clear();  // Python's unpickler reads the pickle instead
  return value ? nb::steal(*value) : nb::none();
}

template <typename Number>
nb::object ToNumpy(formats::NumberColumn column, int64_t rows) {
  std::vector<size_t> shape = {static_cast<size_t>(rows)};
  if (column.width > 0) shape.push_back(static_cast<size_t>(column.width));
  return nb::cast(ArrayOver<nb::ndarray<nb::numpy, Number>>(std::move(column.values), shape));
}

nb::object LoadColumns(nb::handle pickle) {
  const BufferView view(pickle);
  auto found = formats::ReadPickledColumns(view.bytes());
  if (!found) return nb::none();
  nb::list columns;
  for (formats::NumberColumn& column : found->columns) {
    columns.append(column.floating ? ToNumpy<double>(std::move(column), found->rows)
                                   : ToNumpy<int64_t>(std::move(column), found->rows));
  }
  return nb::make_tuple(found->tuples, columns);
}

}  // namespace

void RegisterPickleRows(nb::module_& m) {
  m.def("load_plain", &LoadPlain, "pickle"_a,
        "Reads a pickle of plain data: numbers of up to 64 bits, str, bytes, lists, tuples, "
        "dicts.\n\n"
        "Args:\n    pickle: an object with the buffer interface; protocols 2 to 5.\n\n"
        "Returns:\n    The value. None if the pickle has anything else in it, or is damaged: "
        "none of it was executed.");
  m.def(
      "pickle_is_sound", &IsSound, "pickle"_a,
      "Whether a pickle from another host is safe to parse by Python's unpickler: it allocates no "
      "memory for values that it lacks, and nests tuples and calls at most 1000 deep. "
      "Does not check which functions it calls.\n\n"
      "Args:\n    pickle: as load_plain().");
  m.def("load_columns", &LoadColumns, "pickle"_a,
        "Reads a pickled list of rows as arrays, if they are all numbers, all number lists of one "
        "length, or all tuples of those.\n\n"
        "Args:\n    pickle: as load_plain().\n\n"
        "Returns:\n    (whether the rows are tuples, arrays): an array per tuple field, else "
        "one of all rows; int64 or float64, shape [rows] or [rows, length]. None for every other "
        "pickle, also if ints and floats are mixed.");
}

}  // namespace hearth::bindings
