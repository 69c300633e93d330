// NumPy arrays of values that the core computes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::bindings {

// Returns an array of this shape that owns the memory of `values`. Requires the GIL.
template <typename Array, typename Container>
Array ArrayOver(Container values, const std::vector<size_t>& shape) {
  auto owned = std::make_unique<Container>(std::move(values));
  void* data = owned->data();
  const nanobind::capsule owner(owned.release(),
                                [](void* p) noexcept { delete static_cast<Container*>(p); });
  return Array(data, shape.size(), shape.data(), owner);
}

// A new array that the core fills. Create, use and destroy it with the GIL. The array owns the
// memory, which may be written without the GIL.
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
