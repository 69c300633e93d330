#include "hearth/caffe/layers/batch_loader.h"

#include <atomic>

namespace hearth::caffe {

void BatchLoader::Top::Reshape(Shape new_shape) {
  shape = std::move(new_shape);
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  values.resize(count);
}

BatchLoader::BatchLoader(int depth, Load load) : load_(std::move(load)) {
  for (int i = 0; i < std::max(1, depth); ++i) free_.push_back(std::make_unique<Batch>());
  thread_ = Thread("file batches", [this] { Run(); });
}

BatchLoader::~BatchLoader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
}

const BatchLoader::Batch& BatchLoader::Next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return error_ || !full_.empty(); });
  // What was read before the failure is still delivered.
  if (full_.empty()) std::rethrow_exception(error_);
  free_.push_back(std::move(current_));
  current_ = std::move(full_.front());
  full_.pop_front();
  changed_.notify_all();
  return *current_;
}

void BatchLoader::Run() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stop_ || !free_.empty(); });
    if (stop_) return;
    std::unique_ptr<Batch> batch = std::move(free_.front());
    free_.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      batch->bad_items.clear();
      load_(batch.get());
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error) {
      error_ = error;
    } else {
      full_.push_back(std::move(batch));
    }
    changed_.notify_all();
    if (error) return;
  }
}

void ForEach(int64_t count, int threads, const std::function<void(int64_t)>& work) {
  std::atomic<int64_t> next{0};
  const auto run = [&] {
    for (int64_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<Thread> helpers;
  for (int t = 1; t < threads && t < count; ++t) helpers.emplace_back("transform", run);
  run();
  for (Thread& helper : helpers) helper.Join();
}

}  // namespace hearth::caffe
