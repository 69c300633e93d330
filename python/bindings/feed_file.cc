// A mapped file whose bytes a ring need not copy.
#include <fcntl.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>

#include "hearth/base/error.h"
#include "hearth/feed/mapped_file.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

class PythonFile {
 public:
  explicit PythonFile(const std::string& path) {
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.valid()) ThrowErrno(errno, fmt::format("opening {}", path));
    mapped_ = feed::MappedFile::Map(file, path);
  }

  std::string_view bytes() const {
    return {reinterpret_cast<const char*>(mapped_->data()), mapped_->size()};
  }

  static nb::object View(nb::handle self) {
    const std::string_view bytes = nb::cast<const PythonFile&>(self).bytes();
    const size_t shape[] = {bytes.size()};
    return nb::cast(
        nb::ndarray<nb::memview, const uint8_t, nb::ndim<1>>(bytes.data(), 1, shape, self));
  }

  int64_t Find(const nb::bytes& wanted, size_t begin) const {
    const size_t at = bytes().find({wanted.c_str(), wanted.size()}, begin);
    return at == std::string_view::npos ? -1 : static_cast<int64_t>(at);
  }

 private:
  std::shared_ptr<const feed::MappedFile> mapped_;
};

}  // namespace

void RegisterFeedFile(nb::module_& m) {
  nb::class_<PythonFile>(
      m, "MappedFile",
      "A file that is mapped as long as a view of it lives. Of large values in it that are views "
      "of an Arrow column, RingWriter.write() sends where they lie.")
      .def(nb::init<const std::string&>(), "path"_a,
           "Raises OSError, ValueError where it is empty.")
      .def("view", &PythonFile::View, nb::sig("def view(self) -> memoryview"), "All of its bytes.")
      .def("find", &PythonFile::Find, "wanted"_a, "begin"_a,
           "Where the bytes first are at or behind `begin`; -1 where they are not.");
}

}  // namespace hearth::bindings
