// Raises hearth::Error as the class of hearth.errors for its code.
#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <exception>
#include <string>
#include <string_view>

#include "hearth/base/error.h"
#include "module.h"

namespace nb = nanobind;

namespace hearth::bindings {
namespace {

// Classes by ErrorCode, whose last value is kInternal. They are looked up once, because a
// translator must not run Python code: a pending KeyboardInterrupt would be raised in it.
using Classes = std::array<nb::object, static_cast<size_t>(ErrorCode::kInternal) + 1>;

// Returns the error's exception, whose __cause__ is the exception of the error's cause. Null if
// Python fails to create it.
nb::object ExceptionOf(const Error& error, const Classes& classes) {
  // The text may be invalid UTF-8, because it may contain a file's name or a server's message.
  const std::string& text = error.message();
  const nb::object message = nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
  if (!message.is_valid()) return {};
  const nb::object& type = classes.at(static_cast<size_t>(error.code()));
  nb::object exception =
      nb::steal(PyObject_CallFunctionObjArgs(type.ptr(), message.ptr(), nullptr));
  if (!exception.is_valid() || error.cause() == nullptr) return exception;
  nb::object cause = ExceptionOf(*error.cause(), classes);
  if (!cause.is_valid()) return {};
  // PyException_SetCause takes over the reference.
  PyException_SetCause(exception.ptr(), cause.release().ptr());
  return exception;
}

void Translate(const std::exception_ptr& thrown, void* classes) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    const auto& known = *static_cast<Classes*>(classes);
    const nb::object exception = ExceptionOf(error, known);
    // If ExceptionOf fails, Python's own error is set, for example MemoryError.
    if (!exception.is_valid()) return;
    PyErr_SetObject(known.at(static_cast<size_t>(error.code())).ptr(), exception.ptr());
  }
}

}  // namespace

void RegisterErrors() {
  const nb::object error_class = nb::module_::import_("hearth.errors").attr("error_class");
  auto* classes = new Classes;  // the translator outlives the module
  for (size_t i = 0; i < classes->size(); ++i) {
    const std::string_view code = ErrorCodeName(static_cast<ErrorCode>(i));
    (*classes)[i] = error_class(nb::str(code.data(), code.size()));
  }
  nb::register_exception_translator(Translate, classes);
}

}  // namespace hearth::bindings
