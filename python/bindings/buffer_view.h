#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

namespace hearth::bindings {

// Holds the buffer of a Python object such as bytes or a memoryview. Create and destroy with the
// GIL; the bytes may be read without the GIL.
class BufferView {
 public:
  // Throws Python's error for an object without a contiguous buffer.
  explicit BufferView(nanobind::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_SIMPLE) != 0) {
      nanobind::raise_python_error();
    }
  }
  ~BufferView() { PyBuffer_Release(&buffer_); }
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;

  std::string_view bytes() const {
    return {static_cast<const char*>(buffer_.buf), static_cast<size_t>(buffer_.len)};
  }

 private:
  Py_buffer buffer_;
};

}  // namespace hearth::bindings
