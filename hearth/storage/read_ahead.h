// A file on another machine, read in few large pieces: reads that follow each other, or leave out
// little, come from a window that grows up to 8 MiB, and the next window is fetched by a thread
// meanwhile. A read elsewhere, such as that of a footer, leaves these two where they are; where
// several places are read in turns each has its window, and nothing is fetched ahead. Large reads
// are fetched as they are. Any thread. Keeps up to four windows.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <mutex>

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
    size_t size = 0;
    std::unique_ptr<char[]> bytes;  // not a string, which would be filled before it is read into
    uint64_t end() const { return offset + size; }
    // Whether a read at `at` goes on where it ends, or a little behind.
    bool Precedes(uint64_t at) const;
  };

  // From one of the windows, as many bytes as it has; 0 where none has the first.
  size_t CopyKept(uint64_t offset, char* data, size_t size) const;
  // Takes the window that was fetched ahead; false where it has not `offset`, or failed.
  bool TakeNext(uint64_t offset);
  // Fetches a window that has `size` bytes from `offset` on.
  void MoveWindow(uint64_t offset, size_t size);
  Window FetchWindow(uint64_t offset, size_t size);
  void StartNext();
  // In a forked child: the thread that was fetching is the parent's.
  void LeaveToParent();

  const Fetch fetch_;
  const uint64_t size_;
  Cancellation cancellation_;
  std::mutex mutex_;
  // That which is read in order; that which was until another place was read on, or until a read
  // in the next one; what was read elsewhere.
  Window window_, previous_, elsewhere_;
  size_t window_size_;
  uint64_t next_at_ = 0, next_end_ = 0;
  int left_ = 0;              // moves of other windows since next_ began
  int process_;               // that next_ belongs to
  std::future<Window> next_;  // destroyed first: it uses the others
};

}  // namespace hearth::storage
