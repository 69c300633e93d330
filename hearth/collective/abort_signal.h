// Carries "stop waiting, because ..." from any thread to the one that waits in an operation,
// whether in poll(2) or on a futex.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hearth/base/fd.h"

namespace hearth::collective {

class AbortSignal {
 public:
  AbortSignal();

  // The first reason stays. Any thread.
  void Raise(const std::string& reason);

  bool raised() const { return raised_.load(std::memory_order_acquire); }
  // Throws kAborted with the reason.
  void ThrowIfRaised() const {
    if (raised()) Throw();
  }
  // Readable once raised.
  int fd() const { return event_.get(); }

  // Raise also changes and wakes this futex word, until Forget.
  void WakeToo(std::atomic<uint32_t>* word);
  void Forget();

  // Raise reaches it too. It may end earlier than this one.
  void PassOnTo(const std::shared_ptr<AbortSignal>& other);

 private:
  [[noreturn]] void Throw() const;

  mutable std::mutex mutex_;
  std::string reason_;
  std::atomic<uint32_t>* word_ = nullptr;
  std::vector<std::weak_ptr<AbortSignal>> others_;
  std::atomic<bool> raised_{false};
  Fd event_;
};

}  // namespace hearth::collective
