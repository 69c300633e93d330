#include "hearth/caffe/tools/extract_features.h"

#include <fmt/ranges.h>

#include <filesystem>
#include <memory>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/caffe/data/database/database.h"
#include "hearth/caffe/proto/wire_writer.h"
#include "hearth/caffe/tools/progress_log.h"
#include "hearth/caffe/tools/trained_net.h"
#include "hearth/storage/uri.h"

namespace hearth::caffe {
namespace {

// Checks all options before the first database is created.
void CheckOptions(const FeatureOptions& options, const Net& net) {
  Require(options.blobs.size() == options.databases.size(), ErrorCode::kInvalidArgument,
          "there are {} blobs and {} databases; give one database per blob", options.blobs.size(),
          options.databases.size());
  Require(options.batches > 0, ErrorCode::kInvalidArgument,
          "the number of batches is {}; it must be at least 1", options.batches);
  for (const std::string& blob : options.blobs) {
    Require(net.has_blob(blob), ErrorCode::kNotFound, "the net {} has no blob '{}'; it has {}",
            options.net, blob, fmt::join(net.blob_names(), ", "));
  }
  for (const std::string& database : options.databases) {
    Require(!std::filesystem::exists(storage::LocalPath(database)), ErrorCode::kInvalidArgument,
            "{} already exists; remove it, or choose another database", database);
  }
}

// Writes the rows of one blob to a database.
class FeatureWriter {
 public:
  FeatureWriter(DataParameter::DB backend, const std::string& database)
      : writer_(CreateDatabase(backend, database)) {}

  // Writes one record per row. Rows are numbered across all batches, so a cursor returns the
  // records in the order of the rows.
  void Write(Blob& blob) {
    Shape shape = blob.shape();
    Require(shape.size() <= 4, ErrorCode::kInvalidArgument,
            "a blob of shape {} has more than the four axes that a Datum supports",
            blob.ShapeString());
    // The blob's first axis is the row, and a Datum has three axes. Missing axes get size 1, as in
    // Caffe's legacy shapes.
    shape.resize(4, 1);
    // Converts to row-major order, because blobs may be stored as N x H x W x C.
    const Tensor row_major = blob.data().contiguous();
    const int64_t size = blob.count() / shape[0];
    Datum datum;
    SetShape(shape[1], shape[2], shape[3], &datum);
    for (int64_t row = 0; row < shape[0]; ++row) {
      const float* values = row_major.data_ptr() + row * size;
      datum.mutable_float_data()->assign(values, values + size);
      writer_->Put(fmt::format("{:010}", rows_++), WireBytes(datum));
    }
    writer_->Commit();
  }

  int64_t rows() const { return rows_; }

 private:
  std::unique_ptr<DatabaseWriter> writer_;
  int64_t rows_ = 0;
};

}  // namespace

int64_t ExtractFeatures(const FeatureOptions& options) {
  NetContext context;
  context.device = options.device;
  context.precision = options.precision;
  context.transform_threads = options.threads;
  const std::unique_ptr<Net> net = TrainedTestNet(options.net, options.weights, context);
  CheckOptions(options, *net);
  std::vector<FeatureWriter> writers;
  for (const std::string& database : options.databases) {
    writers.emplace_back(options.backend, database);
  }
  log::Info("Extracting Features");
  ProgressLog progress;
  for (int64_t batch = 0; batch < options.batches; ++batch) {
    // Forward makes the data layers read the next minibatch. At the end of their database, they
    // start again.
    net->Forward();
    for (size_t i = 0; i < writers.size(); ++i) writers[i].Write(net->blob(options.blobs[i]));
    progress.Done(writers[0].rows());
  }
  for (size_t i = 0; i < writers.size(); ++i) {
    log::Info("Extracted features of {} query images for feature blob {}", writers[i].rows(),
              options.blobs[i]);
  }
  log::Info("Successfully extracted the features!");
  return writers[0].rows();
}

}  // namespace hearth::caffe
