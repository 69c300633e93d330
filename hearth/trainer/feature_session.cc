#include "hearth/trainer/feature_session.h"

#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/caffe/snapshot/trained_weights.h"
#include "hearth/caffe/tensor/parallel.h"
#include "hearth/trainer/rows/net_source.h"
#include "hearth/trainer/rows/row_id.h"
#include "hearth/trainer/step/compute_devices.h"

namespace hearth::trainer {
namespace {

// A worker may be idle for a long time between two partitions; if it dies, the wait ends.
constexpr double kIdleTimeoutSeconds = 30 * 24 * 3600.0;
// A reader that takes no results for this long is considered stuck.
constexpr double kResultTimeoutSeconds = 3600;

Deadline ResultDeadline() { return Deadline::After(kResultTimeoutSeconds); }

ring::RingEnd TakeEnd(const StreamFds& fds) { return {Fd(fds.ring_fd), Fd(fds.signal_fd)}; }

}  // namespace

// Returns the part of a blob that belongs to row `row` of a minibatch of `rows` rows. If the blob's
// count is not a multiple of `rows`, as for a loss, the blob describes the whole minibatch, so
// every row gets all values of the blob.
std::span<const float> RowValues(const caffe::Tensor& values, int64_t row, int64_t rows) {
  const int64_t count = values.numel();
  const bool divides = count >= rows && count % rows == 0;
  const int64_t part = divides ? count / rows : count;
  return {values.data_ptr() + (divides ? row * part : 0), static_cast<size_t>(part)};
}

FeatureSession::FeatureSession(Job job, std::function<void(const nlohmann::json&)> send)
    : job_(std::move(job)),
      send_(std::move(send)),
      // Only a limit in rows is checked here. The driver checks a fraction, because each process
      // reads only some of the rows.
      invalid_rows_({.rows = job_.invalid_row_limit().rows}, send_),
      source_(std::make_shared<dataset::RingSource>(TakeEnd(*job_.test), kIdleTimeoutSeconds)) {}

void FeatureSession::Run() {
  // Opens the results first, so that any later error reaches their reader through the ring instead
  // of leaving it waiting for rows.
  ring::RingEnd results = TakeEnd(*job_.results);
  try {
    BuildNet();
    results_ = std::make_unique<ring::ResultWriter>(std::move(results), "SampleID", blobs_);
    send_({{"event", "ready"}});
    while (ServePartition()) {
    }
    results_->End(ResultDeadline());
  } catch (const Error& error) {
    if (!results_) ring::RingWriter(std::move(results)).Fail(error);
    if (results_) results_->ring().Fail(error);
    throw;
  }
  send_({{"event", "done"}, {"rows", rows_}, {"invalid_rows", invalid_rows_.count()}});
}

void FeatureSession::BuildNet() {
  caffe::SetThreadCount(job_.threads);
  caffe::NetContext context;
  context.phase = caffe::TEST;
  // A net without a solver has Caffe's default mode.
  const caffe::SolverParameter solver =
      job_.solver.text.empty() ? caffe::SolverParameter() : SolverOf(job_);
  context.device = ChooseDevice(job_.gpus, solver, job_.rank);
  context.open_source = OpenOnce(source_, "test");
  context.random = std::make_shared<caffe::Random>(job_.seed);
  context.precision = caffe::ParsePrecision(job_.settings.precision);
  context.share_data = true;
  context.kept_blobs = job_.features;
  context.resize_images = job_.settings.resize;
  context.transform_threads = job_.settings.transform_threads;
  context.on_invalid_row = [this](const std::string& id, const std::string& reason) {
    invalid_rows_.Report(id, reason);
  };
  net_ = std::make_unique<caffe::Net>(TestNetOf(job_), context);
  for (const std::string& path : job_.weights) {
    caffe::LoadTrainedWeights(path, net_.get());
  }
  blobs_ = job_.mode == Mode::kTest ? net_->output_names() : job_.features;
  CheckBlobs();
}

void FeatureSession::CheckBlobs() const {
  for (const std::string& name : blobs_) {
    Require(net_->has_blob(name), ErrorCode::kNotFound,
            "the net has no blob \"{}\" in its TEST phase; it has: {}", name,
            fmt::join(net_->blob_names(), ", "));
  }
}

// Processes one partition: all rows up to the feeder's mark, then writes a mark to the results.
// Returns false at the end of the stream, or if the results have no reader any more.
bool FeatureSession::ServePartition() {
  for (;;) {
    const auto rows = net_->Fetch();
    Require(rows.has_value(), ErrorCode::kInvalidArgument,
            "the TEST net has no layer that reads rows (MemoryData with source_class, CoSData)");
    CheckInvalidRows(*rows, *rows == 0);
    if (*rows == 0) break;
    net_->Forward();
    if (!WriteRows(*rows)) return false;
  }
  if (source_->ended()) return false;
  // Flush returns false if the reader of the results has gone. In that case no more rows are
  // needed.
  if (!results_->Flush(ResultDeadline())) return false;
  // The source treats a partition as an epoch, because both end with a mark after the last row.
  net_->NextEpoch();
  return true;
}

// Checks the counts of all partitions that this process has read so far.
void FeatureSession::CheckInvalidRows(int64_t fetched, bool at_end_of_epoch) const {
  const int64_t bad = invalid_rows_.count();
  invalid_rows_.Check(rows_ + fetched + bad, bad, at_end_of_epoch);
}

bool FeatureSession::WriteRows(int64_t rows) {
  const dataset::Minibatch& fetched = LastRows(*net_);
  Require(fetched.size() == rows, ErrorCode::kInternal,
          "the input layer delivered {} rows but {} row ids", rows, fetched.size());
  std::vector<caffe::Tensor> row_major;
  for (const std::string& name : blobs_) {
    // Blobs between layers may be stored as N x H x W x C; results are N x C x H x W, as in Caffe.
    row_major.push_back(net_->blob(name).data().contiguous());
  }
  std::vector<std::span<const float>> values(blobs_.size());
  for (int64_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < blobs_.size(); ++i) {
      values[i] = RowValues(row_major[i], row, rows);
    }
    const auto& from = fetched.rows[static_cast<size_t>(row)];
    if (!results_->Add(RowId(*from.batch, from.index, rows_), values, ResultDeadline())) {
      return false;
    }
    ++rows_;
  }
  return true;
}

}  // namespace hearth::trainer
