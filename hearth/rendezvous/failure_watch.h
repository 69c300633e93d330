#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>

#include "hearth/rendezvous/failure.h"

namespace hearth::rendezvous {

// The first failure of a cluster, and the callbacks to run when it is known. Any thread may call
// it.
class FailureWatch {
 public:
  // A function to call at the failure. It must neither subscribe nor destroy a subscription of the
  // same watch.
  using Callback = std::function<void(const Failure&)>;

  // A registered callback (see below). May outlive the watch.
  class Subscription;

  FailureWatch();

  // Calls `callback` once: immediately if a failure is known, else from the thread that calls
  // Set().
  [[nodiscard]] Subscription Subscribe(Callback callback);

  // Stores the first failure and calls the callbacks; ignores later failures.
  void Set(const Failure& failure);

  bool failed() const;
  std::optional<Failure> failure() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// A registered callback. Cancel() and the destructor wait, without a deadline, for a running call;
// no call follows afterwards. Therefore the callback must not wait for the thread that cancels it.
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
