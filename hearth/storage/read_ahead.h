// A file on another machine, read in few large pieces: reads that follow each other come from a
// window that grows up to 8 MiB, and the next window is fetched by a thread meanwhile. Large reads
// and those elsewhere in the file are fetched as they are. Any thread.
#pragma once

#include <functional>
#include <future>
#include <mutex>
#include <string>

#include "hearth/storage/file_system.h"
#include "hearth/storage/http.h"

namespace hearth::storage {

class ReadAhead : public InputFile {
 public:
  // Reads `size` bytes of the file from `offset` on, or throws; any thread. It gives up when it is
  // cancelled.
  using Fetch = std::function<void(uint64_t offset, char* data, size_t size, const Cancellation&)>;

  ReadAhead(Fetch fetch, uint64_t size);
  // Waits for a fetch that is under way to notice that it is cancelled.
  ~ReadAhead() override;

  size_t ReadAt(uint64_t offset, void* data, size_t size) override;
  uint64_t size() const override { return size_; }

 private:
  struct Window {
    uint64_t offset = 0;
    std::string bytes;
    uint64_t end() const { return offset + bytes.size(); }
  };

  size_t CopyFromWindow(uint64_t offset, char* data, size_t size) const;
  void MoveWindow(uint64_t offset, size_t size);
  Window FetchWindow(uint64_t offset, size_t size);
  void StartNext();
  // In a forked child: the thread that was fetching is the parent's.
  void LeaveToParent();

  const Fetch fetch_;
  const uint64_t size_;
  Cancellation cancellation_;
  std::mutex mutex_;
  Window window_;
  size_t window_size_;
  uint64_t sequential_at_ = 0;  // where the next read begins if it follows the last one
  uint64_t next_at_ = 0;
  int process_;               // that next_ belongs to
  std::future<Window> next_;  // destroyed first: it uses the others
};

}  // namespace hearth::storage
