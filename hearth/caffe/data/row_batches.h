// Batches of rows from a stream. The layer computes the values of the tops row by row.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hearth/caffe/data/prefetcher.h"
#include "hearth/dataset/spool/minibatch.h"

namespace hearth::caffe {

// Batches of valid rows. An invalid row is dropped from all tops, reported in the batch, and
// replaced by the next row.
class RowBatches : public BatchSource {
 public:
  // Writes one row's values into each top. Called from several threads. `seed` is different for
  // each row and depends only on Options::seed, the epoch and the row's position in the epoch.
  // kDataLoss marks a row as invalid; any other error ends the stream.
  using ReadRow = std::function<void(const dataset::Minibatch::Row& row, uint64_t seed,
                                     const std::vector<float*>& tops)>;
  // Options of RowBatches.
  struct Options {
    int64_t batch_size = 1;
    std::vector<int64_t> row_sizes;  // number of floats per row, for each top
    int threads = 1;                 // threads that read rows
    uint64_t seed = 0;
  };

  RowBatches(std::shared_ptr<dataset::MinibatchSource> source, Options options, ReadRow read_row);

  // Fills the batch with batch_size rows, or fewer at the end of an epoch. Each top stores the
  // values of its rows consecutively and has space for batch_size rows.
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
  int64_t rows_taken_ = 0;  // in this epoch, including invalid rows
};

}  // namespace hearth::caffe
