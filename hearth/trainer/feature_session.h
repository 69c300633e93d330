// Applies a trained net to rows and returns each row's values of the selected blobs, in the order
// of the rows.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hearth/caffe/net/net.h"
#include "hearth/dataset/spool/ring_source.h"
#include "hearth/ring/result_writer.h"
#include "hearth/trainer/job/job.h"
#include "hearth/trainer/rows/invalid_rows.h"

namespace hearth::trainer {

// Applies one net to the rows of one worker. Uses a single device, whatever settings.devices says,
// because Spark runs several of these processes. Used by one thread.
class FeatureSession {
 public:
  // Takes ownership of the descriptors of the job's test stream and results.
  FeatureSession(Job job, std::function<void(const nlohmann::json&)> send);

  // Sends "ready", processes partitions until the stream ends, sends "done". A failure is sent to
  // the reader of the results and thrown.
  void Run();

 private:
  void BuildNet();
  void CheckBlobs() const;
  bool ServePartition();
  void CheckInvalidRows(int64_t fetched, bool at_end_of_epoch) const;
  bool WriteRows(int64_t rows);

  const Job job_;
  const std::function<void(const nlohmann::json&)> send_;
  InvalidRows invalid_rows_;
  std::shared_ptr<dataset::RingSource> source_;
  std::unique_ptr<caffe::Net> net_;
  std::vector<std::string> blobs_;
  std::unique_ptr<ring::ResultWriter> results_;
  int64_t rows_ = 0;  // number of rows written
};

// Returns a blob's values for row `row` of a minibatch of `rows` rows: the row's part if the blob
// has values per row, else the whole blob (a loss or an accuracy applies to every row of its
// minibatch).
std::span<const float> RowValues(const caffe::Tensor& values, int64_t row, int64_t rows);

}  // namespace hearth::trainer
