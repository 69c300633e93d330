// Makes the minibatches of a layer that reads files, ahead of their use, on a thread of its own.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "hearth/base/thread.h"
#include "hearth/caffe/blob.h"

namespace hearth::caffe {

// All calls from one thread. Waiting ends when the present batch is read: local files have no
// deadline. Not movable.
class BatchLoader {
 public:
  struct Top {
    Shape shape;
    std::vector<float> values;

    // Makes room for a new shape; the values are those of an earlier batch.
    void Reshape(Shape new_shape);
  };
  struct Batch {
    std::vector<Top> tops;
    std::vector<std::pair<std::string, std::string>> bad_items;  // name, reason
  };
  // Called on the thread, again and again, with a batch that was used before or is empty.
  using Load = std::function<void(Batch*)>;

  // Keeps up to `depth` batches ready.
  BatchLoader(int depth, Load load);
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  // Valid until the next call. Throws what loading threw.
  const Batch& Next();

 private:
  void Run();

  const Load load_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Batch>> free_, full_;
  std::unique_ptr<Batch> current_ = std::make_unique<Batch>();
  std::exception_ptr error_;
  bool stop_ = false;
  Thread thread_;
};

// Calls work(i) for every i in [0, count) on up to `threads` threads, this one included; throws
// what one of them threw.
void ForEach(int64_t count, int threads, const std::function<void(int64_t)>& work);

}  // namespace hearth::caffe
