#include "hearth/collective/operation/abort_signal.h"

#include <sys/eventfd.h>

#include <cerrno>

#include "hearth/base/error.h"
#include "hearth/collective/operation/futex.h"

namespace hearth::collective {

AbortSignal::AbortSignal() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_.valid()) ThrowErrno(errno, "cannot create an event descriptor");
}

// The lock is held while the signal is forwarded. Signals form a tree, like the groups that split
// off from each other, so that nested locks are always acquired from the parent to the child.
void AbortSignal::Raise(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (raised()) return;
  reason_ = reason;
  // raised_ is stored after reason_, because readers test raised_ without the lock.
  raised_.store(true, std::memory_order_release);
  // The write cannot fail, because it is the only one to the counter, which is 0 before.
  ::eventfd_write(event_.get(), 1);
  if (word_ != nullptr) BumpAndWake(*word_);
  for (const auto& other : others_) {
    if (const auto alive = other.lock()) alive->Raise(reason);
  }
}

void AbortSignal::PassOnTo(const std::shared_ptr<AbortSignal>& other) {
  const std::lock_guard lock(mutex_);
  // Drops the expired pointers of destroyed groups, which would otherwise accumulate in a program
  // that splits groups in a loop.
  std::erase_if(others_, [](const auto& known) { return known.expired(); });
  others_.push_back(other);
  // The lock is still held, so either a later Raise finds `other` in the list, or an earlier one is
  // seen here.
  if (raised()) other->Raise(reason_);
}

// The word is in a shared page that its owner unmaps. The lock ensures that no Raise in another
// thread accesses the word after WakeToo(nullptr) has returned.
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
