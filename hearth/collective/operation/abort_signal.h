#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hearth/base/fd.h"

namespace hearth::collective {

// Interrupts a wait in poll(2) or on a futex from another thread, with a reason.
class AbortSignal {
 public:
  AbortSignal();

  // Raises the signal; only the first reason is kept. Any thread may call it.
  void Raise(const std::string& reason);

  bool raised() const { return raised_.load(std::memory_order_acquire); }
  // Throws kAborted with the reason.
  void ThrowIfRaised() const {
    if (raised()) Throw();
  }
  // A descriptor that is readable once the signal is raised.
  int fd() const { return event_.get(); }

  // Until Forget, Raise also changes this futex word and wakes its waiters.
  void WakeToo(std::atomic<uint32_t>* word);
  void Forget();

  // From now on, Raise is forwarded to `other`, which may be destroyed first.
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
