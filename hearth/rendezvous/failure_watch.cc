#include "hearth/rendezvous/failure_watch.h"

#include <utility>

namespace hearth::rendezvous {

struct FailureWatch::State {
  // Locked while callbacks run. If both mutexes are needed, this one is locked first, because
  // callbacks may lock failure_mutex by calling failure().
  std::mutex callbacks_mutex;
  std::list<Callback> callbacks;

  std::mutex failure_mutex;
  std::optional<Failure> failure;
};

FailureWatch::FailureWatch() : state_(std::make_shared<State>()) {}

FailureWatch::Subscription FailureWatch::Subscribe(Callback callback) {
  // Locked while checking for a failure and adding the callback, because a failure in between would
  // be missed or reported twice.
  const std::lock_guard lock(state_->callbacks_mutex);
  Subscription subscription;
  if (const auto known = failure()) {
    callback(*known);
    return subscription;
  }
  subscription.position_ = state_->callbacks.insert(state_->callbacks.end(), std::move(callback));
  subscription.state_ = state_;
  return subscription;
}

void FailureWatch::Set(const Failure& failure) {
  const std::lock_guard lock(state_->callbacks_mutex);
  {
    const std::lock_guard inner(state_->failure_mutex);
    if (state_->failure) return;
    // Set before the callbacks run, because they may call failed().
    state_->failure = failure;
  }
  for (const Callback& callback : state_->callbacks) callback(failure);
}

bool FailureWatch::failed() const {
  const std::lock_guard lock(state_->failure_mutex);
  return state_->failure.has_value();
}

std::optional<Failure> FailureWatch::failure() const {
  const std::lock_guard lock(state_->failure_mutex);
  return state_->failure;
}

FailureWatch::Subscription& FailureWatch::Subscription::operator=(Subscription&& other) noexcept {
  if (this == &other) return *this;
  Cancel();
  state_ = std::move(other.state_);
  position_ = other.position_;
  return *this;
}

void FailureWatch::Subscription::Cancel() noexcept {
  if (!state_) return;
  {
    const std::lock_guard lock(state_->callbacks_mutex);
    // The lock above waits for a running callback. Erasing an element of a list keeps other
    // iterators valid.
    state_->callbacks.erase(position_);
  }
  state_.reset();
}

}  // namespace hearth::rendezvous
