#include "hearth/dataset/spool/streamed_source.h"

#include <algorithm>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/dataset/order/permutation.h"

namespace hearth::dataset {

StreamedSource::StreamedSource(ring::RingEnd ring, const StreamedOptions& options,
                               std::function<void(int64_t)> ask)
    : options_(options), ask_(std::move(ask)), reader_(std::move(ring)) {}

StreamedSource::~StreamedSource() {
  Stop();
  if (thread_.joinable()) thread_.Join();
}

void StreamedSource::BeginAt(int64_t epoch) {
  {
    const std::lock_guard lock(mutex_);
    if (first_epoch_ || stopped_) return;
    first_epoch_ = epoch;
    thread_ = Thread("feed-stream", [this, epoch] { Read(epoch); });
  }
  changed_.notify_all();
  // Called without the lock, because it writes to the feeder and may wait.
  ask_(epoch);
}

void StreamedSource::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  reader_.Close();
}

void StreamedSource::Read(int64_t first_epoch) {
  try {
    int64_t epoch = first_epoch, number = 0;
    while (AwaitSpace()) {
      std::shared_ptr<Window> window = ReadWindow(epoch, number++);
      if (window->is_last) {
        ++epoch;
        number = 0;
      }
      const std::lock_guard lock(mutex_);
      ready_ = std::move(window);
      changed_.notify_all();
    }
  } catch (...) {
    // The consumer rethrows the exception, because this thread has no caller.
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
  changed_.notify_all();
}

// Reads a window and shuffles its rows. Their order does not depend on earlier windows.
std::shared_ptr<StreamedSource::Window> StreamedSource::ReadWindow(int64_t epoch, int64_t number) {
  auto window = std::make_shared<Window>();
  window->epoch = epoch;
  uint64_t bytes = 0;
  while (static_cast<int64_t>(window->rows.size()) < options_.window_rows &&
         bytes < options_.window_bytes) {
    const ring::RingEntry entry = reader_.Next(Deadline::After(options_.timeout_s));
    Require(entry.kind != ring::EntryKind::kEnd, ErrorCode::kInternal,
            "the feeder ended its rows in epoch {}, before the last epoch", epoch);
    window->is_last = entry.kind == ring::EntryKind::kFlush;
    if (window->is_last) break;
    auto batch = batch::CopyBatch(entry.image);
    bytes += entry.image.size();
    reader_.Release();
    for (int64_t i = 0; i < batch->rows(); ++i) window->rows.push_back({batch.get(), i});
    window->batches.push_back(std::move(batch));
  }
  const uint64_t key = MixBits(options_.seed) ^ MixBits(~static_cast<uint64_t>(epoch));
  Shuffle(MixBits(key + static_cast<uint64_t>(number)), &window->rows);
  return window;
}

// Waits until the consumer has taken the previous window, because at most two may be in memory.
// Returns false after Stop(). Has no deadline: training decides when rows are taken, and Stop()
// ends the wait.
bool StreamedSource::AwaitSpace() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopped_ || ready_ == nullptr; });
  return !stopped_;
}

// Moves the next window to the consumer. Rows that are ready are delivered before an error that
// occurred after them.
void StreamedSource::TakeWindow() {
  window_.reset();  // first, to keep at most two windows
  row_ = 0;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopped_ || ready_ != nullptr || error_ != nullptr; });
  Require(!stopped_, ErrorCode::kAborted, "the stream was stopped");
  if (ready_ == nullptr) std::rethrow_exception(error_);
  window_ = std::exchange(ready_, nullptr);
  changed_.notify_all();
}

int64_t StreamedSource::Next(int64_t max_rows, Minibatch* out) {
  out->Clear();
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stopped_ || first_epoch_; });
    Require(!stopped_, ErrorCode::kAborted, "the stream was stopped");
    // A resumed training has already seen these epochs.
    if (epoch_ < *first_epoch_) return 0;
  }
  while (out->size() < max_rows) {
    if (window_ == nullptr || window_->epoch < epoch_ || row_ == window_->rows.size()) {
      if (window_ != nullptr && window_->epoch == epoch_ && window_->is_last) break;
      TakeWindow();
      continue;
    }
    // The consumer's epoch has no more rows; this window belongs to a later one and waits for
    // NextEpoch().
    if (window_->epoch > epoch_) break;
    const size_t end =
        std::min(window_->rows.size(), row_ + static_cast<size_t>(max_rows - out->size()));
    out->keep_alive.push_back(window_);
    for (; row_ < end; ++row_) out->rows.push_back(window_->rows[row_]);
  }
  return out->size();
}

}  // namespace hearth::dataset
