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

// A minibatch: the values of all tops of a data layer.
struct DataBatch {
  // Values of one top.
  struct Top {
    Shape shape;  // empty if the layer knows the shape
    std::vector<float> values;

    // Sets the shape and resizes `values`, which still contains values of an earlier batch.
    void Reshape(Shape new_shape);
  };
  // A skipped row, and the reason why it is invalid.
  struct InvalidRow {
    std::string id, reason;
  };

  std::vector<Top> tops;
  std::vector<InvalidRow> invalid_rows;  // the batch contains other rows instead
  // The valid rows that were read, for layers that read rows.
  dataset::Minibatch rows;
};

// The source of a Prefetcher's batches. Only the Prefetcher's thread calls it.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // Fills `batch`, which is empty or was used before. Returns false at the end of the epoch; the
  // batch is then the last one of the epoch and is delivered even if it is empty, because it may
  // contain invalid rows. After that, Fill is not called again before NextEpoch().
  virtual bool Fill(DataBatch* batch) = 0;
  virtual void NextEpoch() {}
};

// Fills batches of a BatchSource on a separate thread. All calls must come from one thread. These
// calls and the destructor may wait until the source finishes a batch: until its deadline, or until
// a file is read. Not movable.
class Prefetcher {
 public:
  // Keeps up to `depth` batches ready.
  Prefetcher(int depth, std::unique_ptr<BatchSource> source);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Returns the next batch, which is valid until the next call. After the end of an epoch, batches
  // have no rows. If the source fails, the batches from before the failure are delivered first;
  // then this and every later call throws the source's error.
  const DataBatch& Next();
  // Discards the prepared batches of the current epoch and requests the next epoch. Throws the
  // source's error if it has failed.
  void NextEpoch();

 private:
  void Run();
  bool RunOnce(std::unique_lock<std::mutex>& lock);

  const std::unique_ptr<BatchSource> source_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<DataBatch>> free_, full_;
  std::unique_ptr<DataBatch> current_ = std::make_unique<DataBatch>();
  int next_epochs_ = 0;  // epochs requested but not begun
  bool over_ = false;    // true if the epoch has ended
  bool stop_ = false;
  std::exception_ptr error_;
  Thread thread_;
};

}  // namespace hearth::caffe
