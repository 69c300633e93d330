// Maps error codes to Python exception classes.
#include <nanobind/nanobind.h>

#include <exception>
#include <string>

#include "hearth/base/error.h"
#include "module.h"

namespace nb = nanobind;

namespace hearth::bindings {
namespace {

PyObject* PythonClass(ErrorCode code, PyObject* hearth_error) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return PyExc_ValueError;
    case ErrorCode::kNotFound:
      return PyExc_FileNotFoundError;
    case ErrorCode::kDeadlineExceeded:
      return PyExc_TimeoutError;
    case ErrorCode::kUnavailable:
      return PyExc_ConnectionError;
    case ErrorCode::kPermissionDenied:
      return PyExc_PermissionError;
    // Usually a full disk or too many open files; bad_alloc becomes MemoryError.
    case ErrorCode::kResourceExhausted:
      return PyExc_OSError;
    case ErrorCode::kUnimplemented:
    case ErrorCode::kDataLoss:
    case ErrorCode::kAborted:
    case ErrorCode::kInternal:
      break;
  }
  return hearth_error;
}

void Translate(const std::exception_ptr& thrown, void* hearth_error) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    // A file's name, or a server's message, may be invalid UTF-8.
    const std::string& text = error.message();
    PyObject* message =
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
    if (message == nullptr) return;
    PyErr_SetObject(PythonClass(error.code(), static_cast<PyObject*>(hearth_error)), message);
    Py_DECREF(message);
  }
}

}  // namespace

void RegisterErrors(nb::module_& m) {
  PyObject* hearth_error = PyErr_NewExceptionWithDoc(
      "hearth.HearthError", "An error in the core without a matching built-in exception.",
      PyExc_RuntimeError, nullptr);
  if (hearth_error == nullptr) nb::raise_python_error();
  // The translator outlives the module, so it holds a reference.
  m.attr("HearthError") = nb::borrow(hearth_error);
  nb::register_exception_translator(Translate, hearth_error);
}

}  // namespace hearth::bindings
