#include "hearth/caffe/data/row_batches.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/for_each.h"
#include "hearth/caffe/data/row_values.h"
#include "hearth/caffe/tensor/random.h"

namespace hearth::caffe {

RowBatches::RowBatches(std::shared_ptr<dataset::MinibatchSource> source, Options options,
                       ReadRow read_row)
    : source_(std::move(source)), options_(std::move(options)), read_row_(std::move(read_row)) {}

bool RowBatches::Fill(DataBatch* batch) {
  batch->tops.resize(options_.row_sizes.size());
  for (size_t t = 0; t < batch->tops.size(); ++t) {
    batch->tops[t].values.resize(options_.row_sizes[t] * options_.batch_size);
  }
  // Each iteration may drop invalid rows, which the next one replaces.
  while (batch->rows.size() < options_.batch_size) {
    const int64_t first = batch->rows.size();
    if (!TakeRows(batch)) break;
    ReadRows(first, batch);
  }
  return batch->rows.size() > 0;
}

void RowBatches::NextEpoch() {
  source_->NextEpoch();
  pending_.Clear();
  pending_position_ = rows_taken_ = 0;
}

// Moves rows from pending_ to the batch until the batch is full or pending_ is empty. It always
// requests a whole minibatch from the source, because round-robin distribution over several devices
// depends on requests of equal size.
bool RowBatches::TakeRows(DataBatch* batch) {
  dataset::Minibatch& rows = batch->rows;
  if (pending_position_ == pending_.size()) {
    pending_position_ = 0;
    if (source_->Next(options_.batch_size, &pending_) == 0) return false;
  }
  const int64_t count =
      std::min(pending_.size() - pending_position_, options_.batch_size - rows.size());
  const auto first = pending_.rows.begin() + pending_position_;
  rows.rows.insert(rows.rows.end(), first, first + count);
  // Rows point into the source's memory, which the owners in keep_alive keep alive. If a source's
  // minibatch is split between two batches, both contain all of its owners.
  rows.keep_alive.insert(rows.keep_alive.end(), pending_.keep_alive.begin(),
                         pending_.keep_alive.end());
  pending_position_ += count;
  if (pending_position_ == pending_.size()) {
    pending_.Clear();
    pending_position_ = 0;
  }
  return true;
}

// Reads the values of rows `first` and up. A row's seed depends on its number in the epoch, so its
// random choices do not depend on batches or threads.
void RowBatches::ReadRows(int64_t first, DataBatch* batch) {
  const int64_t count = batch->rows.size() - first;
  const uint64_t epoch_seed = MixSeed(options_.seed, source_->epoch());
  std::vector<std::string> reasons(count);
  // Each thread takes the next unread row, because reading times of images differ widely.
  std::atomic<int64_t> position{0};
  const auto work = [&](int64_t) {
    std::vector<float*> tops(batch->tops.size());
    for (int64_t i = position++; i < count; i = position++) {
      for (size_t t = 0; t < tops.size(); ++t) {
        tops[t] = batch->tops[t].values.data() + (first + i) * options_.row_sizes[t];
      }
      try {
        read_row_(batch->rows.rows[first + i], MixSeed(epoch_seed, rows_taken_ + i), tops);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kDataLoss) throw;
        reasons[i] = error.message();
      }
    }
  };
  const int threads = static_cast<int>(std::min<int64_t>(options_.threads, count));
  ForEach(threads, threads, work);
  DropInvalidRows(first, reasons, batch);
  // Updated after DropInvalidRows, which derives row numbers from it.
  rows_taken_ += count;
}

// Removes invalid rows and their values. The other rows keep their order.
void RowBatches::DropInvalidRows(int64_t first, const std::vector<std::string>& reasons,
                                 DataBatch* batch) {
  std::vector<dataset::Minibatch::Row>& rows = batch->rows.rows;
  int64_t kept = first;
  for (int64_t i = 0; i < static_cast<int64_t>(reasons.size()); ++i) {
    const int64_t from = first + i;
    if (!reasons[i].empty()) {
      batch->invalid_rows.push_back({RowId(rows[from], rows_taken_ + i), reasons[i]});
      continue;
    }
    if (kept != from) {
      rows[kept] = rows[from];
      for (size_t t = 0; t < batch->tops.size(); ++t) {
        const int64_t size = options_.row_sizes[t];
        std::vector<float>& values = batch->tops[t].values;
        std::copy_n(&values[from * size], size, &values[kept * size]);
      }
    }
    ++kept;
  }
  rows.resize(kept);
}

}  // namespace hearth::caffe
