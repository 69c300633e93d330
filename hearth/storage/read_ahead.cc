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

}  // namespace

ReadAhead::ReadAhead(Fetch fetch, uint64_t size)
    : fetch_(std::move(fetch)), size_(size), window_size_(kFirstWindow), process_(getpid()) {}

ReadAhead::~ReadAhead() {
  LeaveToParent();
  cancellation_.Cancel();
}

void ReadAhead::LeaveToParent() {
  if (process_ == getpid()) return;
  process_ = getpid();
  if (next_.valid()) new std::future<Window>(std::move(next_));  // to destroy it waits for ever
}

size_t ReadAhead::ReadAt(uint64_t offset, void* data, size_t size) {
  if (offset >= size_) return 0;
  size = std::min<uint64_t>(size, size_ - offset);
  auto* out = static_cast<char*>(data);
  std::unique_lock lock(mutex_);
  LeaveToParent();
  size_t done = CopyFromWindow(offset, out, size);
  if (size - done >= kLargestWindow) {
    lock.unlock();
    fetch_(offset + done, out + done, size - done, cancellation_);
    lock.lock();
    done = size;
  }
  while (done < size) {
    MoveWindow(offset + done, size - done);
    done += CopyFromWindow(offset + done, out + done, size - done);
  }
  sequential_at_ = offset + size;
  return size;
}

size_t ReadAhead::CopyFromWindow(uint64_t offset, char* data, size_t size) const {
  if (offset < window_.offset || offset >= window_.end()) return 0;
  const size_t start = offset - window_.offset;
  const size_t count = std::min(size, window_.bytes.size() - start);
  std::memcpy(data, window_.bytes.data() + start, count);
  return count;
}

void ReadAhead::MoveWindow(uint64_t offset, size_t size) {
  const bool sequential = offset == sequential_at_ || offset == window_.end();
  window_size_ = sequential ? std::min(2 * window_size_, kLargestWindow) : kFirstWindow;
  if (next_.valid() && next_at_ == offset) {
    try {
      window_ = next_.get();
      StartNext();
      return;
    } catch (const std::exception&) {
      // Fetched once more below, by the thread that can be told.
    }
  }
  window_ = FetchWindow(offset, std::max(window_size_, size));
  if (sequential) StartNext();
}

ReadAhead::Window ReadAhead::FetchWindow(uint64_t offset, size_t size) {
  Window window{offset, std::string(std::min<uint64_t>(size, size_ - offset), '\0')};
  fetch_(offset, window.bytes.data(), window.bytes.size(), cancellation_);
  return window;
}

void ReadAhead::StartNext() {
  next_at_ = window_.end();
  if (next_at_ >= size_) return;
  const size_t size = std::min(2 * window_size_, kLargestWindow);
  try {
    next_ = std::async(std::launch::async,
                       [this, at = next_at_, size] { return FetchWindow(at, size); });
  } catch (const std::system_error&) {
    // No more threads for this process: the window is fetched when it is asked for.
  }
}

}  // namespace hearth::storage
