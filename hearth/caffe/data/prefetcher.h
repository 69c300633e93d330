// Makes the minibatches of a data layer ahead of their use, on a thread of its own.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hearth/base/thread.h"
#include "hearth/caffe/net/blob.h"
#include "hearth/dataset/minibatch.h"

namespace hearth::caffe {

struct DataBatch {
  struct Top {
    Shape shape;  // left empty where the layer knows it
    std::vector<float> values;

    // Makes room for a new shape; the values are those of an earlier batch.
    void Reshape(Shape new_shape);
  };
  struct BadRow {
    std::string id, reason;
  };

  std::vector<Top> tops;
  std::vector<BadRow> bad_rows;  // that other rows replaced
  dataset::Minibatch rows;       // what was read, for layers that are fed by rows; without bad ones
};

// Where a Prefetcher's batches come from. Used by its thread alone.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // Fills a batch that was used before or is empty. False where the epoch ended before it: anything
  // else in the batch, such as bad rows, is delivered once; only NextEpoch() goes on.
  virtual bool Fill(DataBatch* batch) = 0;
  virtual void NextEpoch() {}
};

// All calls from one thread. A wait ends when the source's does: with its deadline, or when a file
// is read. Not movable.
class Prefetcher {
 public:
  // Keeps up to `depth` batches ready.
  Prefetcher(int depth, std::unique_ptr<BatchSource> source);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Valid until the next call. After the end of an epoch, batches without rows. What came before a
  // failure of the source is delivered, then the failure is thrown, at this and every later call.
  const DataBatch& Next();
  // Drops what is ready of this epoch. Throws what the source threw.
  void NextEpoch();

 private:
  void Run();
  bool RunOnce(std::unique_lock<std::mutex>& lock);

  const std::unique_ptr<BatchSource> source_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<DataBatch>> free_, full_;
  std::unique_ptr<DataBatch> current_ = std::make_unique<DataBatch>();
  int next_epochs_ = 0;  // that were asked for and are not begun
  bool over_ = false;    // the epoch
  bool stop_ = false;
  std::exception_ptr error_;
  Thread thread_;
};

}  // namespace hearth::caffe
