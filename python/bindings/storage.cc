// hearth.native._core: files by path or URI.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gil.h"
#include "hearth/base/error.h"
#include "hearth/base/local_folders.h"
#include "hearth/storage/file.h"
#include "hearth/storage/file_system.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using storage::FileStatus;

class PythonInput {
 public:
  explicit PythonInput(const std::string& uri) : file_(storage::For(uri).Open(uri)) {}
  ~PythonInput() {
    const ReleasedGil released;  // a read-ahead may be in progress
    file_.reset();
  }
  PythonInput(const PythonInput&) = delete;
  PythonInput& operator=(const PythonInput&) = delete;

  nb::bytes ReadAt(uint64_t offset, size_t size) {
    const uint64_t left = offset < file_->size() ? file_->size() - offset : 0;
    // Reads into the memory of the bytes object, so that the bytes are not copied again.
    nb::bytes bytes(nullptr, std::min<uint64_t>(size, left));
    // The bytes may be written, because the object is not shared yet.
    auto* data = const_cast<char*>(bytes.c_str());
    const size_t count = WithoutGil([&] { return file_->ReadAt(offset, data, bytes.size()); });
    return count == bytes.size() ? bytes : nb::bytes(data, count);
  }
  uint64_t size() const { return file_->size(); }

 private:
  std::unique_ptr<storage::InputFile> file_;
};

class PythonOutput {
 public:
  explicit PythonOutput(const std::string& uri) : file_(storage::For(uri).Create(uri)) {}
  ~PythonOutput() {
    if (!file_) return;
    const ReleasedGil released;  // may delete a temporary file on a server
    file_.reset();
  }
  PythonOutput(const PythonOutput&) = delete;
  PythonOutput& operator=(const PythonOutput&) = delete;

  void Append(nb::bytes bytes) {
    const std::string_view view(bytes.c_str(), bytes.size());
    const ReleasedGil released;
    file().Append(view);
  }
  void Commit() {
    file().Commit();
    file_.reset();
  }
  void Discard() { file_.reset(); }

 private:
  storage::OutputFile& file() {
    Require(file_ != nullptr, ErrorCode::kInvalidArgument,
            "the file was already committed or discarded");
    return *file_;
  }

  std::unique_ptr<storage::OutputFile> file_;
};

nb::bytes ReadFile(const std::string& uri, bool without_jvm) {
  const std::string contents =
      WithoutGil([&] { return storage::For(uri, without_jvm).ReadAll(uri); });
  return nb::bytes(contents.data(), contents.size());
}

void WriteFile(const std::string& uri, nb::bytes contents) {
  const std::string_view bytes(contents.c_str(), contents.size());
  const ReleasedGil released;
  storage::AtomicFile file(uri);
  file.Append(bytes);
  file.Commit();
}

void AppendFile(const std::string& uri, nb::bytes contents) {
  const std::string_view bytes(contents.c_str(), contents.size());
  const ReleasedGil released;
  storage::For(uri).Append(uri, bytes);
}

void RegisterOpenFiles(nb::module_& m) {
  nb::class_<PythonInput>(m, "InputFile", "An open file. Thread-safe.")
      .def(nb::init<const std::string&>(), "uri"_a, ReleaseGil())
      .def("read_at", &PythonInput::ReadAt, "offset"_a, "size"_a,
           "The bytes from offset on; fewer at the end of the file. Sequential reads are "
           "read ahead.")
      .def("size", &PythonInput::size);
  nb::class_<PythonOutput>(m, "OutputFile",
                           "A file that gets its name by commit(). Not thread-safe.")
      .def(nb::init<const std::string&>(), "uri"_a, ReleaseGil())
      .def("append", &PythonOutput::Append, "bytes"_a)
      .def("commit", &PythonOutput::Commit, ReleaseGil(),
           "Gives the file its name, replacing an existing file.")
      .def("discard", &PythonOutput::Discard, ReleaseGil(), "Deletes the file.");
}

}  // namespace

void RegisterStorage(nb::module_& m) {
  nb::class_<FileStatus>(m, "FileStatus", "Properties of a file or folder.")
      .def_ro("uri", &FileStatus::uri)
      .def_ro("is_folder", &FileStatus::is_folder)
      .def_ro("size", &FileStatus::size)
      .def_ro("modified_ms", &FileStatus::modified_ms);
  RegisterOpenFiles(m);
  m.def(
      "local_folders",
      [] {
        nb::list folders;  // of bytes, because a path need not be UTF-8
        for (const std::string& folder : LocalFolders()) {
          folders.append(nb::bytes(folder.data(), folder.size()));
        }
        return folders;
      },
      "Folders of this executor for temporary files, one per disk; empty without Spark.");
  m.def("read_file", &ReadFile, "uri"_a, nb::kw_only(), "without_jvm"_a = false,
        "The contents of a file; `without_jvm`: reads HDFS by WebHDFS only.");
  m.def("write_file", &WriteFile, "uri"_a, "contents"_a,
        "Writes a file, which appears under its name once complete.");
  m.def("append_file", &AppendFile, "uri"_a, "contents"_a,
        "Appends bytes to a file, creating it if needed.");
  m.def(
      "stat_file",
      [](const std::string& uri) -> std::optional<FileStatus> {
        return storage::For(uri).Stat(uri);
      },
      "uri"_a, ReleaseGil(), "The FileStatus of a file or folder; None if it does not exist.");
  m.def(
      "list_folder",
      [](const std::string& uri, bool without_jvm) {
        return storage::For(uri, without_jvm).List(uri);
      },
      "folder"_a, nb::kw_only(), "without_jvm"_a = false, ReleaseGil(),
      "The FileStatus of each file and folder in a folder, by name; `without_jvm` as for "
      "read_file().");
  m.def("glob_files", &storage::Glob, "pattern"_a, ReleaseGil(),
        "The files and folders whose names match *, ? and [a-z] in any part, in order.");
  m.def(
      "rename_file",
      [](const std::string& from, const std::string& to) { storage::For(from).Rename(from, to); },
      "from_uri"_a, "to_uri"_a, ReleaseGil(), "Renames a file, replacing an existing one.");
  m.def(
      "delete_file",
      [](const std::string& uri, bool recursive) {
        return storage::For(uri).Delete(uri, recursive);
      },
      "uri"_a, "recursive"_a = false, ReleaseGil(),
      "Deletes a file or folder; False if it does not exist. A non-empty folder needs "
      "`recursive`.");
  m.def(
      "make_folders", [](const std::string& uri) { storage::For(uri).MakeFolders(uri); }, "uri"_a,
      ReleaseGil(), "Creates a folder and its parents.");
}

}  // namespace hearth::bindings
