// Prepares a data layer's minibatches ahead of their use, on a separate thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hearth/base/thread.h"
#include "hearth/caffe/tensor/blob.h"
#include "hearth/dataset/spool/minibatch.h"

namespace hearth::caffe {

// A minibatch: values of all tops of a data layer.
struct DataBatch {
  // Values of one top.
  struct Top {
    Shape shape;  // empty if the layer knows it
    std::vector<float> values;

    // Resizes the buffer for a new shape; the values are those of an earlier batch.
    void Reshape(Shape new_shape);
  };
  // A skipped row, and why it is invalid.
  struct InvalidRow {
    std::string id, reason;
  };

  std::vector<Top> tops;
  std::vector<InvalidRow> invalid_rows;  // replaced by other rows
  // The rows read, without invalid ones, for layers that are fed by rows.
  dataset::Minibatch rows;
};

// Source of a Prefetcher's batches. Used by its thread alone.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // Fills a used or empty batch. Returns false at the end of the epoch: the batch's other content,
  // such as invalid rows, is delivered once; then only NextEpoch() continues.
  virtual bool Fill(DataBatch* batch) = 0;
  virtual void NextEpoch() {}
};

// All calls from one thread. A wait, also the destructor's for the batch in progress, ends when the
// source's does: at its deadline, or when a file is read. Not movable.
class Prefetcher {
 public:
  // Keeps up to `depth` batches ready.
  Prefetcher(int depth, std::unique_ptr<BatchSource> source);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Valid until the next call. After the end of an epoch, returns batches without rows. If the
  // source fails, the batches before the failure are delivered, then it is thrown, at this and
  // every later call.
  const DataBatch& Next();
  // Drops prepared batches of this epoch. Throws the source's failure.
  void NextEpoch();

 private:
  void Run();
  bool RunOnce(std::unique_lock<std::mutex>& lock);

  const std::unique_ptr<BatchSource> source_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<DataBatch>> free_, full_;
  std::unique_ptr<DataBatch> current_ = std::make_unique<DataBatch>();
  int next_epochs_ = 0;  // requested, but not begun
  bool over_ = false;    // the epoch has ended
  bool stop_ = false;
  std::exception_ptr error_;
  Thread thread_;
};

}  // namespace hearth::caffe
