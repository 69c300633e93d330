// hearth.native._core.TfRecordWriter: writes Arrow batches as TFRecord files of tf.train.Example.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "batch.h"
#include "gil.h"
#include "hearth/base/error.h"
#include "hearth/batch/arrow_image.h"
#include "hearth/batch/batch_view.h"
#include "hearth/batch/tf_example_encode.h"
#include "hearth/formats/tfrecord.h"
#include "hearth/storage/file.h"
#include "hearth/storage/uri.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

// Bytes per write to a remote file.
constexpr size_t kBlockBytes = size_t{256} << 10;

// A remote file that becomes visible under its name when it is finished.
class RemoteSink : public formats::ByteSink {
 public:
  explicit RemoteSink(const std::string& uri) : file_(uri) {}

  void Write(std::string_view bytes) override {
    block_.append(bytes);
    if (block_.size() >= kBlockBytes) Flush();
  }
  void Finish() override {
    Flush();
    file_.Commit();
  }

 private:
  void Flush() {
    file_.Append(block_);
    block_.clear();
  }

  storage::AtomicFile file_;
  std::string block_;
};

std::unique_ptr<formats::ByteSink> OpenSink(const std::string& path, bool gzip) {
  const ReleasedGil released;  // may access a server
  std::unique_ptr<formats::ByteSink> sink;
  if (const auto local = storage::LocalPathOf(path)) {
    sink = formats::OpenFileSink(*local);
  } else {
    sink = std::make_unique<RemoteSink>(path);
  }
  return gzip ? formats::OpenGzipSink(std::move(sink)) : std::move(sink);
}

class PythonWriter {
 public:
  PythonWriter(const std::string& path, bool gzip) : records_(OpenSink(path, gzip)) {}
  ~PythonWriter() { Discard(); }
  PythonWriter(const PythonWriter&) = delete;
  PythonWriter& operator=(const PythonWriter&) = delete;

  int64_t Write(nb::handle rows) {
    const ArrowBatch batch(rows);
    const ReleasedGil released;
    // Converts the rows to a batch image first, because the encoder reads the columns of a batch.
    const batch::ArrowImage image(batch.schema(), batch.array());
    std::vector<uint64_t> words(image.ImageBytes(0, image.rows()) / sizeof(uint64_t));
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(words));
    image.Write(0, image.rows(), bytes);
    const batch::BatchView view(bytes);
    formats::TfRecordWriter& records = Records();
    batch::EncodeExamples(view, [&](std::string_view example) { records.Write(example); });
    return view.rows();
  }
  void Finish() {
    const ReleasedGil released;
    Records().Finish();
    records_.reset();
  }
  void Discard() {
    if (!records_) return;
    const ReleasedGil released;  // may delete a temporary file on a server
    records_.reset();
  }

 private:
  formats::TfRecordWriter& Records() {
    Require(records_.has_value(), ErrorCode::kInvalidArgument,
            "the file was already committed or discarded");
    return *records_;
  }

  std::optional<formats::TfRecordWriter> records_;
};

}  // namespace

void RegisterTfRecordWriter(nb::module_& m) {
  nb::class_<PythonWriter>(m, "TfRecordWriter",
                           "Writes rows as tf.train.Examples to a file, by path or URI. A file in "
                           "HDFS gets its name when finished, replacing an existing file.")
      .def(nb::init<const std::string&, bool>(), "path"_a, "gzip"_a = false)
      .def("write", &PythonWriter::Write, "rows"_a,
           "Appends the rows of anything with __arrow_c_array__; returns their number.")
      .def("finish", &PythonWriter::Finish, "The file is complete.")
      .def("discard", &PythonWriter::Discard,
           "Discards the file; one in HDFS is deleted. No effect after finish().");
}

}  // namespace hearth::bindings
