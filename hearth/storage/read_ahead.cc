#include "hearth/storage/read_ahead.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <system_error>
#include <utility>

namespace hearth::storage {
namespace {

constexpr size_t kFirstWindow = 128 << 10;
constexpr size_t kLargestWindow = 8 << 20;
// The gap that a sequential reader may skip, such as the end of a page, a page of another kind or a
// column.
constexpr size_t kLargestGap = kFirstWindow;
// A prefetched window is kept until other windows have moved this number of times, because reads
// may alternate.
constexpr int kMaxSkippedMoves = 3;

}  // namespace

ReadAhead::ReadAhead(Fetch fetch, uint64_t size)
    : fetch_(std::move(fetch)), size_(size), window_size_(kFirstWindow), process_(getpid()) {}

ReadAhead::~ReadAhead() {
  AbandonInChild();
  cancellation_.Cancel();
}

void ReadAhead::AbandonInChild() {
  if (process_ == getpid()) return;
  process_ = getpid();
  // Intentionally leaked: the future's destructor would wait forever for a thread that exists only
  // in the parent.
  if (next_.valid()) new std::future<Window>(std::move(next_));
}

// Each iteration serves a part of the read: from a window in memory, or from the window that a
// thread has fetched ahead, or by a fetch in this thread. The mutex is held during fetches into
// windows, so concurrent readers of one file wait for each other. Only large reads run in parallel.
size_t ReadAhead::ReadAt(uint64_t offset, void* data, size_t size) {
  if (offset >= size_) return 0;
  size = std::min<uint64_t>(size, size_ - offset);
  auto* out = static_cast<char*>(data);
  std::unique_lock lock(mutex_);
  AbandonInChild();
  bool in_order = false;
  for (size_t done = 0; done < size;) {
    const uint64_t at = offset + done;
    const size_t rest = size - done;
    if (const size_t copied = CopyFromWindows(at, out + done, rest); copied > 0) {
      done += copied;
      continue;
    }
    // Computed before TakeNext, which moves window_.
    in_order = window_.Precedes(at);
    if (TakeNext(at)) continue;
    if (rest < kLargestWindow) {
      MoveWindow(at, rest);
    } else {
      // Sets an empty window at the end of this read, so that the next read is recognized as
      // sequential.
      if (in_order) window_ = {at + rest, 0, nullptr};
      lock.unlock();
      fetch_(at, out + done, rest, cancellation_);
      return size;
    }
  }
  // Fetches ahead only after sequential reads, because the window would be wasted for random reads.
  if (in_order) StartNext();
  return size;
}

bool ReadAhead::Window::Precedes(uint64_t at) const {
  return at >= end() && at - end() <= kLargestGap;
}

size_t ReadAhead::CopyFromWindows(uint64_t offset, char* data, size_t size) const {
  for (const Window* window : {&window_, &previous_, &random_}) {
    if (offset < window->offset || offset >= window->end()) continue;
    const size_t start = offset - window->offset;
    const size_t count = std::min(size, window->size - start);
    std::memcpy(data, window->bytes.get() + start, count);
    return count;
  }
  return 0;
}

bool ReadAhead::TakeNext(uint64_t offset) {
  if (!next_.valid() || offset < next_at_ || offset >= next_end_) return false;
  const bool in_order = window_.Precedes(offset);
  try {
    Window next = next_.get();
    if (!in_order) {
      // The current window served reads at other offsets, which may continue, so it is kept.
      // Windows become smaller, because less of each is used.
      previous_ = std::move(window_);
      window_size_ = std::max(window_size_ / 2, kFirstWindow);
    }
    window_ = std::move(next);
    return true;
  } catch (const std::exception&) {
    return false;  // the reading thread fetches again and reports the error
  }
}

void ReadAhead::MoveWindow(uint64_t offset, size_t size) {
  // Windows double in size while reads are sequential. So a footer costs one small request, and a
  // file that is read in full costs few requests.
  if (window_.Precedes(offset)) {
    const size_t larger = std::min(2 * window_size_, kLargestWindow);
    window_ = FetchWindow(offset, std::max(larger, size));
    window_size_ = larger;
    return;
  }
  Window* const others[] = {&previous_, &random_};
  // The read may continue a window other than window_, if there is a second reader or if values are
  // read after an index. That window becomes the sequential one, and window sizes start to grow
  // again.
  const auto other = std::ranges::find_if(others, [offset](const Window* window) {
    return window->size > 0 && window->Precedes(offset);
  });
  if (other == std::end(others)) {
    random_ = FetchWindow(offset, std::max(kFirstWindow, size));
    return;
  }
  window_size_ = 2 * kFirstWindow;
  **other = FetchWindow(offset, std::max(window_size_, size));
  if (*other == &random_) std::swap(random_, previous_);
  std::swap(previous_, window_);
}

ReadAhead::Window ReadAhead::FetchWindow(uint64_t offset, size_t size) {
  size = std::min<uint64_t>(size, size_ - offset);
  Window window{offset, size, std::make_unique_for_overwrite<char[]>(size)};
  fetch_(offset, window.bytes.get(), size, cancellation_);
  return window;
}

void ReadAhead::StartNext() {
  if (next_.valid() && ++skipped_moves_ < kMaxSkippedMoves) return;
  // The assignment waits for the thread of an unused fetch, which uses this object.
  next_ = {};
  skipped_moves_ = 0;
  const uint64_t at = window_.end();
  if (at >= size_) return;
  window_size_ = std::min(2 * window_size_, kLargestWindow);
  try {
    next_ = std::async(std::launch::async,
                       [this, at, size = window_size_] { return FetchWindow(at, size); });
    next_at_ = at;
    next_end_ = std::min<uint64_t>(at + window_size_, size_);
  } catch (const std::system_error&) {
    // If no more threads can be started, the window is fetched on demand.
  }
}

}  // namespace hearth::storage
