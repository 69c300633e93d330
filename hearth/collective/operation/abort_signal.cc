#include "hearth/collective/operation/abort_signal.h"

#include <sys/eventfd.h>

#include <cerrno>

#include "hearth/base/error.h"
#include "hearth/collective/operation/futex.h"

namespace hearth::collective {

AbortSignal::AbortSignal() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_.valid()) ThrowErrno(errno, "cannot create an event descriptor");
}

void AbortSignal::Raise(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (raised()) return;
  reason_ = reason;
  raised_.store(true, std::memory_order_release);
  // Cannot fail: the counter is 0 before the only write.
  ::eventfd_write(event_.get(), 1);
  if (word_ != nullptr) BumpAndWake(*word_);
  for (const auto& other : others_) {
    if (const auto alive = other.lock()) alive->Raise(reason);
  }
}

void AbortSignal::PassOnTo(const std::shared_ptr<AbortSignal>& other) {
  const std::lock_guard lock(mutex_);
  std::erase_if(others_, [](const auto& known) { return known.expired(); });
  others_.push_back(other);
  if (raised()) other->Raise(reason_);
}

void AbortSignal::WakeToo(std::atomic<uint32_t>* word) {
  const std::lock_guard lock(mutex_);
  word_ = word;
}

void AbortSignal::Forget() { WakeToo(nullptr); }

void AbortSignal::Throw() const {
  const std::lock_guard lock(mutex_);
  throw Error(ErrorCode::kAborted, reason_);
}

}  // namespace hearth::collective
