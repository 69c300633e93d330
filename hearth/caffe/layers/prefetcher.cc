#include "hearth/caffe/layers/prefetcher.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/row_values.h"
#include "hearth/caffe/random.h"

namespace hearth::caffe {

Prefetcher::Prefetcher(std::shared_ptr<feed::MinibatchSource> source, Options options,
                       ReadRow read_row)
    : source_(std::move(source)), options_(std::move(options)), read_row_(std::move(read_row)) {
  for (Batch* batch : {&current_, &next_}) {
    for (const int64_t size : options_.row_sizes) {
      batch->tops.emplace_back(size * options_.batch_size);
    }
  }
  thread_ = Thread("prefetch", [this] { Run(); });
}

Prefetcher::~Prefetcher() {
  {
    std::unique_lock lock(mutex_);
    WaitForThread(lock);
    state_ = State::kStop;
  }
  changed_.notify_all();
}

const Prefetcher::Batch& Prefetcher::Next() {
  std::unique_lock lock(mutex_);
  WaitForThread(lock);
  if (state_ == State::kFailed) std::rethrow_exception(error_);
  if (state_ == State::kReady) {
    std::swap(current_, next_);
    state_ = State::kFilling;
    changed_.notify_all();
  } else {
    current_.rows.Clear();
    current_.bad_rows = std::exchange(next_.bad_rows, {});
  }
  return current_;
}

void Prefetcher::NextEpoch() {
  std::unique_lock lock(mutex_);
  WaitForThread(lock);
  if (state_ == State::kFailed) std::rethrow_exception(error_);
  state_ = State::kRestart;
  changed_.notify_all();
}

void Prefetcher::WaitForThread(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [this] { return state_ != State::kFilling && state_ != State::kRestart; });
}

void Prefetcher::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] {
      return state_ == State::kFilling || state_ == State::kRestart || state_ == State::kStop;
    });
    if (state_ == State::kStop) return;
    const bool restart = state_ == State::kRestart;
    state_ = State::kFilling;
    lock.unlock();
    State result = State::kFailed;
    try {
      if (restart) {
        source_->NextEpoch();
        pending_.Clear();
        pending_position_ = rows_taken_ = 0;
      }
      FillBatch();
      result = next_.rows.size() > 0 ? State::kReady : State::kOver;
    } catch (...) {
      error_ = std::current_exception();
    }
    lock.lock();
    state_ = result;
    changed_.notify_all();
    if (result == State::kFailed) return;
  }
}

void Prefetcher::FillBatch() {
  next_.rows.Clear();
  next_.bad_rows.clear();
  while (next_.rows.size() < options_.batch_size) {
    const int64_t first = next_.rows.size();
    if (!TakeRows()) return;
    ReadRows(first);
  }
}

// Moves rows from pending_ into next_ until that is full. The source is always asked for a whole
// minibatch: its dealing of minibatches to several devices depends on equal requests.
bool Prefetcher::TakeRows() {
  if (pending_position_ == pending_.size()) {
    pending_position_ = 0;
    if (source_->Next(options_.batch_size, &pending_) == 0) return false;
  }
  const int64_t count =
      std::min(pending_.size() - pending_position_, options_.batch_size - next_.rows.size());
  const auto first = pending_.rows.begin() + pending_position_;
  next_.rows.rows.insert(next_.rows.rows.end(), first, first + count);
  next_.rows.keep_alive.insert(next_.rows.keep_alive.end(), pending_.keep_alive.begin(),
                               pending_.keep_alive.end());
  pending_position_ += count;
  if (pending_position_ == pending_.size()) {
    pending_.Clear();
    pending_position_ = 0;
  }
  return true;
}

void Prefetcher::ReadRows(int64_t first) {
  const int64_t count = next_.rows.size() - first;
  const uint64_t epoch_seed = MixSeed(options_.seed, source_->epoch());
  std::vector<std::string> reasons(count);
  std::atomic<int64_t> position{0};
  const auto work = [&] {
    std::vector<float*> tops(options_.row_sizes.size());
    for (int64_t i = position++; i < count; i = position++) {
      for (size_t t = 0; t < tops.size(); ++t) {
        tops[t] = next_.tops[t].data() + (first + i) * options_.row_sizes[t];
      }
      try {
        read_row_(next_.rows.rows[first + i], MixSeed(epoch_seed, rows_taken_ + i), tops);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kDataLoss) throw;
        reasons[i] = error.message();
      }
    }
  };
  {
    std::vector<Thread> helpers;
    for (int t = 1; t < options_.threads && t < count; ++t) helpers.emplace_back("transform", work);
    work();
    for (Thread& helper : helpers) helper.Join();
  }
  DropBadRows(first, reasons);
  rows_taken_ += count;
}

void Prefetcher::DropBadRows(int64_t first, const std::vector<std::string>& reasons) {
  int64_t kept = first;
  for (int64_t i = 0; i < static_cast<int64_t>(reasons.size()); ++i) {
    const int64_t from = first + i;
    if (!reasons[i].empty()) {
      next_.bad_rows.push_back({RowId(next_.rows.rows[from], rows_taken_ + i), reasons[i]});
      continue;
    }
    if (kept != from) {
      next_.rows.rows[kept] = next_.rows.rows[from];
      for (size_t t = 0; t < next_.tops.size(); ++t) {
        const int64_t size = options_.row_sizes[t];
        std::copy_n(&next_.tops[t][from * size], size, &next_.tops[t][kept * size]);
      }
    }
    ++kept;
  }
  next_.rows.rows.resize(kept);
}

}  // namespace hearth::caffe
