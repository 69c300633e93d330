#include "hearth/collective/operation/abort_signal.h"

#include <sys/eventfd.h>

#include <cerrno>

#include "hearth/base/error.h"
#include "hearth/collective/operation/futex.h"

namespace hearth::collective {

AbortSignal::AbortSignal() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_.valid()) ThrowErrno(errno, "cannot create an event descriptor");
}

// The lock stays held while the signal is passed on. Signals form a tree, of a group and those that
// split off from it, so that nested locks are always taken from the parent to the child.
void AbortSignal::Raise(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (raised()) return;
  reason_ = reason;
  // After reason_: readers test raised_ without the lock.
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
  // A split group that has been destroyed leaves an expired pointer; a program that splits groups
  // in a loop must not collect them.
  std::erase_if(others_, [](const auto& known) { return known.expired(); });
  others_.push_back(other);
  // Under the lock: Raise either finds `other` in the list, or has finished and is seen here.
  if (raised()) other->Raise(reason_);
}

// The word lies in a shared page that its owner unmaps. Once WakeToo(nullptr) has returned, no
// Raise in another thread can touch it any more.
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
