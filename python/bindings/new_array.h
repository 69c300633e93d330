// A new NumPy array that the core fills.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace hearth::bindings {

// Create, use and destroy with the GIL; the memory may be written without it. The array owns its
// memory.
class NewArray {
 public:
  NewArray(const std::vector<int64_t>& shape, std::string_view dtype) {
    namespace nb = nanobind;
    nb::list axes;
    for (const int64_t axis : shape) axes.append(axis);
    array_ = nb::module_::import_("numpy").attr("empty")(nb::tuple(axes),
                                                         nb::str(dtype.data(), dtype.size()));
    if (PyObject_GetBuffer(array_.ptr(), &buffer_, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS) != 0) {
      nb::raise_python_error();
    }
  }
  ~NewArray() { PyBuffer_Release(&buffer_); }
  NewArray(const NewArray&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(buffer_.buf); }
  size_t bytes() const { return static_cast<size_t>(buffer_.len); }
  nanobind::object array() const { return array_; }

 private:
  nanobind::object array_;
  Py_buffer buffer_;
};

}  // namespace hearth::bindings
