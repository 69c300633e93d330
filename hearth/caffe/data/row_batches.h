// Batches of rows from a stream, whose values the layer computes row by row.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hearth/caffe/data/prefetcher.h"
#include "hearth/dataset/spool/minibatch.h"

namespace hearth::caffe {

// Invalid rows are left out with all their columns, named in the batch, and replaced by the
// following rows.
class RowBatches : public BatchSource {
 public:
  // Writes one row's values into each top. Called from several threads. `seed` is the row's own,
  // and depends only on the options' seed, the epoch and the row's position in it. kDataLoss marks
  // a row as invalid; every other failure ends the stream.
  using ReadRow = std::function<void(const dataset::Minibatch::Row& row, uint64_t seed,
                                     const std::vector<float*>& tops)>;
  // Options of RowBatches.
  struct Options {
    int64_t batch_size = 1;
    std::vector<int64_t> row_sizes;  // floats per row, for each top
    int threads = 1;                 // for reading rows
    uint64_t seed = 0;
  };

  RowBatches(std::shared_ptr<dataset::MinibatchSource> source, Options options, ReadRow read_row);

  // batch_size rows, fewer at the end of an epoch. A top has its rows' values consecutively, and
  // capacity for batch_size rows.
  bool Fill(DataBatch* batch) override;
  void NextEpoch() override;

 private:
  bool TakeRows(DataBatch* batch);
  void ReadRows(int64_t first, DataBatch* batch);
  void DropInvalidRows(int64_t first, const std::vector<std::string>& reasons, DataBatch* batch);

  const std::shared_ptr<dataset::MinibatchSource> source_;
  const Options options_;
  const ReadRow read_row_;
  dataset::Minibatch pending_;  // read from the source, not yet in a batch
  int64_t pending_position_ = 0;
  int64_t rows_taken_ = 0;  // in this epoch
};

}  // namespace hearth::caffe
