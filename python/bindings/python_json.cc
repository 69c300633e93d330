#include "python_json.h"

#include <cmath>
#include <string>

#include "hearth/base/error.h"
#include "limited_api.h"

namespace nb = nanobind;

namespace hearth::bindings {
namespace {

using rendezvous::Json;

std::string ToText(nb::handle text) {
  Py_ssize_t size = 0;
  if (const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size)) {
    return {bytes, static_cast<size_t>(size)};
  }
  PyErr_Clear();  // the text has lone surrogates, as a path that is not UTF-8 may have
  const nb::object replaced = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "replace"));
  if (!replaced.is_valid()) nb::raise_python_error();
  return {PyBytes_AS_STRING(replaced.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(replaced.ptr()))};
}

std::string NameOfType(nb::handle object) { return ToText(object.type().attr("__name__")); }

Json ToInteger(nb::handle object) {
  const long long value = PyLong_AsLongLong(object.ptr());
  // -1 is a valid value, but also signals an error.
  if (value != -1 || PyErr_Occurred() == nullptr) return value;
  PyErr_Clear();
  const unsigned long long large = PyLong_AsUnsignedLongLong(object.ptr());
  if (PyErr_Occurred() == nullptr) return large;
  PyErr_Clear();
  Throw(ErrorCode::kInvalidArgument, "an integer of more than 64 bits cannot be sent in a message");
}

Json ToNumber(nb::handle object) {
  const double value = PyFloat_AS_DOUBLE(object.ptr());
  Require(std::isfinite(value), ErrorCode::kInvalidArgument,
          "{} cannot be sent in a message: JSON has no such number", value);
  return value;
}

Json Convert(nb::handle object, int depth);

// Limits the nesting of lists and dicts, because a list may contain itself.
void RequireShallow(int depth) {
  Require(depth < rendezvous::kDeepestNesting, ErrorCode::kInvalidArgument,
          "a message is nested deeper than {}", rendezvous::kDeepestNesting);
}

Json ToArray(nb::handle sequence, int depth) {
  RequireShallow(depth);
  Json array = Json::array();
  for (const nb::handle value : sequence) array.push_back(Convert(value, depth + 1));
  return array;
}

Json ToObject(nb::handle dict, int depth) {
  RequireShallow(depth);
  Json object = Json::object();
  for (const auto [key, value] : nb::borrow<nb::dict>(dict)) {
    Require(PyUnicode_Check(key.ptr()), ErrorCode::kInvalidArgument,
            "a key of a message must be a str, not a {}", NameOfType(key));
    object[ToText(key)] = Convert(value, depth + 1);
  }
  return object;
}

Json Convert(nb::handle object, int depth) {
  PyObject* value = object.ptr();
  if (PyUnicode_Check(value)) return ToText(object);
  // bool is checked before int, because a Python bool is also an int.
  if (PyBool_Check(value)) return value == Py_True;
  if (PyLong_Check(value)) return ToInteger(object);
  if (PyFloat_Check(value)) return ToNumber(object);
  if (value == Py_None) return nullptr;
  if (PyDict_Check(value)) return ToObject(object, depth);
  if (PyList_Check(value) || PyTuple_Check(value)) return ToArray(object, depth);
  Throw(ErrorCode::kInvalidArgument, "a {} cannot be sent in a message, which is JSON",
        NameOfType(object));
}

nb::object ToString(const std::string& text) { return nb::str(text.data(), text.size()); }

}  // namespace

Json FromPython(nb::handle object) { return Convert(object, 0); }

nb::object ToPython(const Json& value) {
  switch (value.type()) {
    case Json::value_t::string:
      return ToString(value.get_ref<const std::string&>());
    case Json::value_t::boolean:
      return nb::bool_(value.get<bool>());
    case Json::value_t::number_integer:
      return nb::int_(value.get<int64_t>());
    case Json::value_t::number_unsigned:
      return nb::int_(value.get<uint64_t>());
    case Json::value_t::number_float:
      return nb::float_(value.get<double>());
    case Json::value_t::array: {
      nb::list list;
      for (const Json& item : value) list.append(ToPython(item));
      return list;
    }
    case Json::value_t::object: {
      nb::dict dict;
      for (const auto& [key, item] : value.items()) dict[ToString(key)] = ToPython(item);
      return dict;
    }
    default:
      return nb::none();
  }
}

}  // namespace hearth::bindings
