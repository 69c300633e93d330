#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>

#include "hearth/rendezvous/failure.h"

namespace hearth::rendezvous {

// Holds the first failure and calls its subscribers. Any thread may call it.
class FailureWatch {
 public:
  // Must neither subscribe nor destroy a subscription of the same watch.
  using Callback = std::function<void(const Failure&)>;

  // Its callback may be called until the destructor returns, which waits for a running call. A
  // subscription may outlive the watch.
  class Subscription;

  FailureWatch();

  // Calls `callback` once: at once if a failure is known, else from the thread of Set().
  [[nodiscard]] Subscription Subscribe(Callback callback);

  // Keeps the first failure and calls the callbacks; later failures are ignored.
  void Set(const Failure& failure);

  bool failed() const;
  std::optional<Failure> failure() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// A registered callback. After Cancel or its destructor returns, no call is running or follows:
// they wait for a running one without a deadline, so the callback must not wait for their thread.
class FailureWatch::Subscription {
 public:
  Subscription() = default;
  Subscription(Subscription&& other) noexcept = default;
  Subscription& operator=(Subscription&& other) noexcept;
  ~Subscription() { Cancel(); }
  void Cancel() noexcept;

 private:
  friend class FailureWatch;
  std::shared_ptr<State> state_;
  std::list<Callback>::iterator position_;
};

}  // namespace hearth::rendezvous
