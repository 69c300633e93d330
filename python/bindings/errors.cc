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

// Classes by ErrorCode, whose last value is kInternal. Looked up once: a translator must run no
// Python code, in which a pending KeyboardInterrupt would be raised.
using Classes = std::array<nb::object, static_cast<size_t>(ErrorCode::kInternal) + 1>;

void Translate(const std::exception_ptr& thrown, void* classes) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    // A file's name, or a server's message, may be invalid UTF-8.
    const std::string& text = error.message();
    const nb::object message = nb::steal(PyUnicode_DecodeUTF8(
        text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
    if (!message.is_valid()) return;
    const auto& type = static_cast<Classes*>(classes)->at(static_cast<size_t>(error.code()));
    PyErr_SetObject(type.ptr(), message.ptr());
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
