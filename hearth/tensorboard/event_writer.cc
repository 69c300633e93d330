#include "hearth/tensorboard/event_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/fd.h"
#include "hearth/base/host_name.h"
#include "hearth/base/write_all.h"
#include "hearth/formats/tfrecord.h"
#include "hearth/formats/wire.h"
#include "hearth/storage/file.h"
#include "hearth/storage/uri.h"
#include "hearth/tensorboard/event_fields.h"

namespace hearth::tensorboard {
namespace {

using formats::PutHead;
using formats::PutVarint;
using formats::WireReader;

void PutInt(uint32_t field, uint64_t value, std::string* out) {
  PutVarint(field << 3 | WireReader::kVarint, out);
  PutVarint(value, out);
}

template <typename T>
void PutFixed(uint32_t field, T value, std::string* out) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  PutVarint(field << 3 | (sizeof(T) == 8 ? WireReader::kFixed64 : WireReader::kFixed32), out);
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void PutBytes(uint32_t field, std::string_view bytes, std::string* out) {
  PutHead(field, bytes.size(), out);
  out->append(bytes);
}

void AppendDouble(double value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string Wrapped(uint32_t field, std::string_view bytes) {
  std::string out;
  PutBytes(field, bytes, &out);
  return out;
}

// Adds a text to a summary value: a tensor of one string, and the plugin that displays it.
void PutText(std::string_view text, std::string* value) {
  std::string tensor;
  PutInt(tensor_fields::kType, tensor_fields::kString, &tensor);
  PutBytes(tensor_fields::kShape, "", &tensor);  // no dimensions: a scalar
  PutBytes(tensor_fields::kStringValue, text, &tensor);
  PutBytes(value_fields::kTensor, tensor, value);
  const std::string plugin = Wrapped(1, "text");
  PutBytes(value_fields::kMetadata, Wrapped(1, plugin), value);
}

std::string FileName(double now) {
  // TensorBoard reads the files in a folder in the order of their names.
  return fmt::format("events.out.tfevents.{:010}.{:06}.{}.{}", static_cast<int64_t>(now),
                     static_cast<int64_t>(now * 1e6) % 1000000, HostName(), getpid());
}

}  // namespace

// An output file that buffers whole records and writes them in one call in Flush(), so readers do
// not see partial records.
class EventWriter::File : public formats::ByteSink {
 public:
  explicit File(const std::string& uri) : path_(uri) {
    if (!storage::IsLocal(uri)) {
      remote_.emplace(uri);
      return;
    }
    path_ = storage::LocalPath(uri);
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), error);
    // O_EXCL fails for an existing file or link, because other users may be able to write to the
    // folder.
    fd_ = Fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
    if (!fd_.valid()) ThrowErrno(errno, fmt::format("cannot create {}", path_));
  }

  void Write(std::string_view bytes) override { buffer_.append(bytes); }
  void Finish() override {
    Flush();
    if (remote_) remote_->Commit();
    fd_.Reset();
  }
  void Flush() {
    const std::string bytes = std::exchange(buffer_, {});  // failed writes are not retried
    if (remote_) return remote_->Append(bytes);
    WriteAll(fd_.get(), bytes, path_);
  }

 private:
  std::string path_;
  Fd fd_;
  std::optional<storage::AtomicFile> remote_;
  std::string buffer_;
};

EventWriter::EventWriter(const std::string& folder, double now)
    : path_(storage::Join(folder, FileName(now))) {
  auto file = std::make_unique<File>(path_);
  file_ = file.get();
  records_ = std::make_unique<formats::TfRecordWriter>(std::move(file));
  // TensorBoard requires the version as the first record. The flush makes the file recognizable at
  // once.
  Put(now, 0, Wrapped(event_fields::kVersion, "brain.Event:2"));
  Flush();
}

EventWriter::~EventWriter() = default;

void EventWriter::Put(double at, int64_t step, const std::string& rest) {
  std::string event;
  PutFixed(event_fields::kTime, at, &event);
  PutInt(event_fields::kStep, static_cast<uint64_t>(step), &event);
  event += rest;
  records_->Write(event);
}

void EventWriter::Add(const Point& point) {
  std::string value;
  PutBytes(value_fields::kTag, point.tag, &value);
  if (point.text.empty()) {
    PutFixed(value_fields::kNumber, static_cast<float>(point.value), &value);
  } else {
    PutText(point.text, &value);
  }
  Put(point.at, point.step, Wrapped(event_fields::kSummary, Wrapped(1, value)));
}

void EventWriter::Add(const Histogram& histogram) {
  // For each bin, HistogramProto has an upper limit and a count, as packed doubles. All bins have
  // the same width.
  const auto parts = static_cast<double>(histogram.counts.size());
  const double width = histogram.most - histogram.least;
  std::string limits, counts;
  double count = 0;
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    const double share = static_cast<double>(i + 1) / parts;
    AppendDouble(histogram.least + width * share, &limits);  // upper limit of bin i
    AppendDouble(static_cast<double>(histogram.counts[i]), &counts);
    count += static_cast<double>(histogram.counts[i]);
  }
  std::string bytes;
  PutFixed(histogram_fields::kLeast, histogram.least, &bytes);
  PutFixed(histogram_fields::kMost, histogram.most, &bytes);
  PutFixed(histogram_fields::kCount, count, &bytes);
  PutFixed(histogram_fields::kSum, histogram.sum, &bytes);
  PutFixed(histogram_fields::kSumSquares, histogram.sum_squares, &bytes);
  PutBytes(histogram_fields::kLimits, limits, &bytes);
  PutBytes(histogram_fields::kCounts, counts, &bytes);
  std::string value;
  PutBytes(value_fields::kTag, histogram.tag, &value);
  PutBytes(value_fields::kHistogram, bytes, &value);
  // Event { summary = Summary { value = 1: Value } }, as for points.
  Put(histogram.at, histogram.step, Wrapped(event_fields::kSummary, Wrapped(1, value)));
}

void EventWriter::AddGraph(std::span<const GraphNode> nodes, double at) {
  std::string graph;
  for (const GraphNode& node : nodes) {
    std::string bytes;
    PutBytes(node_fields::kName, node.name, &bytes);
    PutBytes(node_fields::kKind, node.kind, &bytes);
    for (const std::string& input : node.inputs) PutBytes(node_fields::kInput, input, &bytes);
    PutBytes(1, bytes, &graph);
  }
  Put(at, 0, Wrapped(event_fields::kGraph, graph));
}

void EventWriter::Rewind(int64_t step, double at) {
  // Readers drop points whose step is at or after that of a session start.
  std::string session;
  PutInt(session_fields::kStatus, session_fields::kStart, &session);
  Put(at, step + 1, Wrapped(event_fields::kSession, session));
}

void EventWriter::Flush() { file_->Flush(); }

void EventWriter::Finish() { records_->Finish(); }

}  // namespace hearth::tensorboard
