#pragma once

#include <functional>
#include <future>
#include <memory>
#include <mutex>

#include "hearth/storage/file_system.h"
#include "hearth/storage/http.h"

namespace hearth::storage {

// Reads a remote file in few large requests. Sequential reads, also with small gaps, are served
// from a window that grows up to 8 MiB, while a thread fetches the next window. A read at another
// offset, such as that of a footer, keeps both; if reads alternate between several offsets, each
// gets its own window and nothing is fetched ahead. Large reads are fetched directly. Any thread.
// Keeps up to four windows.
class ReadAhead : public InputFile {
 public:
  // Reads `size` bytes of the file at `offset`, or throws; any thread. Returns early when
  // cancelled.
  using Fetch = std::function<void(uint64_t offset, char* data, size_t size, const Cancellation&)>;

  ReadAhead(Fetch fetch, uint64_t size);
  // Cancels a running fetch and waits for it.
  ~ReadAhead() override;

  size_t ReadAt(uint64_t offset, void* data, size_t size) override;
  uint64_t size() const override { return size_; }

 private:
  // Bytes of the file that were fetched together.
  struct Window {
    uint64_t offset = 0;
    size_t size = 0;
    std::unique_ptr<char[]> bytes;  // not a string, which would be zeroed first
    uint64_t end() const { return offset + size; }
    // True if a read at `at` starts at the window's end, or after a small gap.
    bool Precedes(uint64_t at) const;
  };

  // Copies from one of the windows, as many bytes as it has; 0 if none contains `offset`.
  size_t CopyFromWindows(uint64_t offset, char* data, size_t size) const;
  // Takes the window that was fetched ahead; false if it does not contain `offset`, or failed.
  bool TakeNext(uint64_t offset);
  // Fetches a window with `size` bytes at `offset`.
  void MoveWindow(uint64_t offset, size_t size);
  Window FetchWindow(uint64_t offset, size_t size);
  void StartNext();
  // In a forked child: abandons the fetch, whose thread exists only in the parent.
  void AbandonInChild();

  const Fetch fetch_;
  const uint64_t size_;
  Cancellation cancellation_;
  std::mutex mutex_;
  // The window of sequential reads; the one before it, or of sequential reads that may continue;
  // the window of other reads.
  Window window_, previous_, random_;
  size_t window_size_;
  uint64_t next_at_ = 0, next_end_ = 0;
  int skipped_moves_ = 0;     // moves of other windows since the fetch of next_ started
  int process_;               // owner of next_
  std::future<Window> next_;  // destroyed first: it uses the other members
};

}  // namespace hearth::storage
