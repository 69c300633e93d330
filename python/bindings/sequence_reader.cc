// Reads records of SequenceFiles and the keys of their images. Values of memory-mapped files are
// not copied.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "gil.h"
#include "hearth/base/error.h"
#include "hearth/formats/image_keys.h"
#include "hearth/formats/mapped_file.h"
#include "hearth/formats/sequence_reader.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using formats::SequenceBatch;
using formats::SequenceReader;

std::string BytesOf(const nb::object& object) {
  const auto bytes = nb::cast<nb::bytes>(object);
  return {bytes.c_str(), bytes.size()};
}

// Wraps Python's decompressor, whose exceptions mean that the data is damaged.
SequenceReader::Unpack UnpackBy(nb::object unpack) {
  if (unpack.is_none()) return nullptr;
  return [unpack = std::move(unpack)](std::string_view packed) {
    try {
      return BytesOf(unpack(nb::bytes(packed.data(), packed.size())));
    } catch (const nb::python_error& error) {
      // Propagates other exceptions, such as KeyboardInterrupt or MemoryError.
      if (!error.matches(PyExc_Exception) || error.matches(PyExc_MemoryError)) throw;
      throw Error(ErrorCode::kDataLoss, nb::str(error.value()).c_str());
    }
  };
}

// Releases the GIL if the reader does not call Python.
class MaybeReleased {
 public:
  explicit MaybeReleased(bool release) {
    if (release) released_.emplace();
  }

 private:
  std::optional<ReleasedGil> released_;
};

class PythonSequence {
 public:
  PythonSequence(const std::string& name, nb::object file, uint64_t size, nb::object codec,
                 const std::string& path)
      : reader_(std::make_unique<formats::WindowedBytes>(
                    name, size,
                    [file = std::move(file)](uint64_t at, size_t count) {
                      return BytesOf(file.attr("read_at")(at, count));
                    }),
                name, [&](const std::string& codec_name) {
                  return UnpackBy(codec(nb::bytes(codec_name.data(), codec_name.size())));
                }) {
    // Compressed values have to be copied anyway, so such a file is read through Python.
    in_place_ = !path.empty() && !reader_.packed();
    if (in_place_) reader_.Map(formats::MappedFile::Open(path));
  }

  void Begin(uint64_t begin, uint64_t end, uint64_t wanted) {
    const MaybeReleased released(in_place_);
    reader_.Begin(begin, end, wanted);
  }

  uint64_t Count(uint64_t begin, uint64_t end) {
    const MaybeReleased released(in_place_);
    return reader_.Count(begin, end);
  }

  static nb::object Next(nb::handle self, size_t most_records, size_t most_bytes) {
    auto& reader = nb::cast<PythonSequence&>(self);
    auto batch = std::make_unique<SequenceBatch>();
    {
      const MaybeReleased released(reader.in_place_);
      *batch = reader.reader_.NextBatch(most_records, most_bytes);
    }
    if (batch->keys.empty()) return nb::none();
    nb::list keys;
    for (const std::string& key : batch->keys) keys.append(nb::bytes(key.data(), key.size()));
    const nb::bytes views(batch->views.data(), batch->views.size());
    const auto* values = reinterpret_cast<const uint8_t*>(batch->values().data());
    const size_t shape[] = {batch->values().size()};
    // The memoryview keeps the owner of its memory alive: the reader with its mapping, or the batch
    // with its copy.
    nb::object owner = nb::borrow(self);
    if (!reader.in_place_) {
      batch->keys = {};
      owner = nb::capsule(batch.release(),
                          [](void* held) noexcept { delete static_cast<SequenceBatch*>(held); });
    }
    nb::object buffer =
        nb::cast(nb::ndarray<nb::memview, const uint8_t, nb::ndim<1>>(values, 1, shape, owner));
    return nb::make_tuple(keys, views, buffer);
  }

 private:
  SequenceReader reader_;
  bool in_place_ = false;
};

nb::object PythonImageKey(const nb::bytes& key) {
  const auto found = formats::ReadImageKey({key.c_str(), key.size()});
  if (!found) return nb::none();
  return nb::make_tuple(found->id, found->label, found->channels, found->height, found->width,
                        found->encoded);
}

}  // namespace

void RegisterSequenceReader(nb::module_& m) {
  nb::class_<PythonSequence>(
      m, "SequenceReader",
      "Records of a SequenceFile of BytesWritables. An uncompressed local file is mapped "
      "as long as this or a view of its values lives; RingWriter.write() sends large values "
      "by reference. Not thread-safe. Raises ValueError for a file that is damaged or of another "
      "format, and what reading it raises.")
      .def(nb::init<const std::string&, nb::object, uint64_t, nb::object, const std::string&>(),
           "name"_a, "file"_a, "size"_a, "codec"_a, "path"_a = "",
           nb::sig("def __init__(self, name: str, file: object, size: int, codec: "
                   "collections.abc.Callable[[bytes], object], path: str = '') -> None"),
           "Reads the header. `file` has read_at(); `codec` returns the decompressor of "
           "the Java codec class with this name, or None; `path`: of a local file.")
      .def("begin", &PythonSequence::Begin, "begin"_a, "end"_a, "wanted"_a = 0,
           "Selects the records between the first sync markers at or after the positions. "
           "`wanted`: end of the last range to be read.")
      .def(
          "next", &PythonSequence::Next, "most_records"_a, "most_bytes"_a,
          nb::sig("def next(self, most_records: int, most_bytes: int) -> "
                  "tuple[list[bytes], bytes, memoryview] | None"),
          "The next keys, their values as Arrow binary views, and the single buffer of these; None "
          "after the last.")
      .def("count", &PythonSequence::Count, "begin"_a, "end"_a,
           "Number of records in a range, read from their lengths only.");
  m.def("image_key", &PythonImageKey, "key"_a,
        nb::sig("def image_key(key: bytes) -> tuple[str | None, str | None, int | None, int | "
                "None, int | None, bool | None] | None"),
        "Id, label, channels, height, width and whether the image is encoded, from the key that "
        "CaffeOnSpark's tools write; None for an undecodable key. A key of two strings is "
        "that of an image file.");
}

}  // namespace hearth::bindings
