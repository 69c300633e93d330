#pragma once

#include <functional>
#include <future>
#include <memory>
#include <mutex>

#include "hearth/storage/file_system.h"
#include "hearth/storage/http.h"

namespace hearth::storage {

// An InputFile that reads a remote file in few large requests. Sequential reads, which may have
// small gaps, are served from a window that grows up to 8 MiB, while a thread fetches the next
// window. A read at another offset, such as for a footer, does not discard these two windows. If
// reads alternate between several offsets, each offset gets its own window, and nothing is fetched
// ahead. Large reads are fetched directly. Stores up to four windows. Thread-safe.
class ReadAhead : public InputFile {
 public:
  // Reads `size` bytes of the file at `offset`, or throws. Returns early when cancelled. Called in
  // any thread.
  using Fetch = std::function<void(uint64_t offset, char* data, size_t size, const Cancellation&)>;

  ReadAhead(Fetch fetch, uint64_t size);
  // Cancels a running fetch and waits for its end.
  ~ReadAhead() override;

  size_t ReadAt(uint64_t offset, void* data, size_t size) override;
  uint64_t size() const override { return size_; }

 private:
  // A range of the file that was fetched at once.
  struct Window {
    uint64_t offset = 0;
    size_t size = 0;
    std::unique_ptr<char[]> bytes;  // not a string, which would be filled with zeros first
    uint64_t end() const { return offset + size; }
    // True if a read at `at` starts at the window's end or after a small gap.
    bool Precedes(uint64_t at) const;
  };

  // Copies bytes at `offset` from one of the windows. Returns the number of bytes, which may be
  // less than `size`, or 0 if no window contains `offset`.
  size_t CopyFromWindows(uint64_t offset, char* data, size_t size) const;
  // Makes the prefetched window the current one. Returns false if it does not contain `offset` or
  // if the fetch failed.
  bool TakeNext(uint64_t offset);
  // Replaces one of the windows with a new one that has at least `size` bytes at `offset`.
  void MoveWindow(uint64_t offset, size_t size);
  Window FetchWindow(uint64_t offset, size_t size);
  void StartNext();
  // In a forked child, abandons the fetch, because its thread exists only in the parent.
  void AbandonInChild();

  const Fetch fetch_;
  const uint64_t size_;
  Cancellation cancellation_;
  std::mutex mutex_;
  // window_ is the window of sequential reads. previous_ is the sequential window before it, which
  // may be continued. random_ is the window of other reads.
  Window window_, previous_, random_;
  size_t window_size_;
  uint64_t next_at_ = 0, next_end_ = 0;
  int skipped_moves_ = 0;     // how often other windows have moved since the fetch of next_ started
  int process_;               // process that has started the fetch of next_
  std::future<Window> next_;  // last member, destroyed first: its thread uses the other members
};

}  // namespace hearth::storage
