#include "hearth/collective/queue.h"

#include <chrono>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/collective/group.h"

namespace hearth::collective {

struct Handle::State {
  State(Request asked, Queue::Callback callback)
      : request(std::move(asked)), on_done(std::move(callback)) {}

  void Finish(const std::exception_ptr& failure) {
    {
      const std::lock_guard lock(mutex);
      done = true;
      error = failure;
    }
    changed.notify_all();
    // The callback is called without the lock, because it may call done() on this handle.
    if (on_done) on_done(failure);
  }

  const Request request;
  const Queue::Callback on_done;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::exception_ptr error;
};

bool Handle::done() const {
  const std::lock_guard lock(state_->mutex);
  return state_->done;
}

void Handle::Wait(Deadline deadline) const {
  std::unique_lock lock(state_->mutex);
  if (!deadline.Wait(state_->changed, lock, [&] { return state_->done; })) {
    Throw(ErrorCode::kDeadlineExceeded,
          "{} did not finish before the deadline; it continues in the background",
          CallOf(state_->request).Describe());
  }
  if (state_->error != nullptr) std::rethrow_exception(state_->error);
}

Queue::Queue(Group& group, double timeout_s) : group_(group), timeout_s_(timeout_s) {
  thread_ = Thread("collective", [this] { Loop(); });
}

Queue::~Queue() { Close(); }

Handle Queue::Submit(Request request, Callback on_done) {
  std::unique_lock lock = Open(&request);
  auto state = std::make_shared<Handle::State>(std::move(request), std::move(on_done));
  waiting_.push_back(state);
  lock.unlock();
  changed_.notify_all();
  return Handle(std::move(state));
}

// Runs the operation in the caller's thread if no other one is pending. This saves the two thread
// switches of Submit and Wait, which cost more than a small operation. `running_` prevents the
// queue's thread from starting another operation meanwhile, because the group runs one at a time.
bool Queue::TryRun(Request request) {
  std::unique_lock lock = Open(&request);
  if (running_ || !waiting_.empty()) return false;
  running_ = true;
  lock.unlock();
  const std::exception_ptr failure = Run(request);
  lock.lock();
  running_ = false;
  // Wakes the queue's thread only if an operation has arrived meanwhile or the queue stops.
  // Notifies under the lock, because the queue may be destroyed once that thread has seen the
  // change.
  if (stopping_ || !waiting_.empty()) changed_.notify_all();
  lock.unlock();
  if (failure != nullptr) std::rethrow_exception(failure);
  return true;
}

void Queue::Close() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  // Uses a separate mutex, because the thread needs mutex_ to end. A second caller of Close waits
  // here until the first one has joined the thread.
  const std::lock_guard one_at_a_time(closing_);
  thread_.Join();
  const auto ended = std::make_exception_ptr(
      Error(ErrorCode::kAborted, "the queue of operations ended before this one began"));
  // No lock is needed for waiting_: the thread has ended, and Open rejects new requests.
  for (const auto& state : waiting_) state->Finish(ended);
  waiting_.clear();
}

void Queue::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return !running_ && (stopping_ || !waiting_.empty()); });
    if (stopping_) return;
    const std::shared_ptr<Handle::State> state = std::move(waiting_.front());
    waiting_.pop_front();
    running_ = true;
    lock.unlock();
    const std::exception_ptr failure = Run(state->request);
    lock.lock();
    running_ = false;  // now TryRun may run an operation in another thread
    lock.unlock();
    state->Finish(failure);
    lock.lock();
  }
}

// Checks the request in the caller's thread, so that an invalid request fails alone. An error
// inside Run would break the group.
std::unique_lock<std::mutex> Queue::Open(Request* request) {
  group_.Check(*request);
  request->submitted = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  Require(!stopping_, ErrorCode::kAborted, "the queue of operations is closed");
  return lock;
}

std::exception_ptr Queue::Run(const Request& request) noexcept {
  try {
    group_.Run(request, Deadline::After(timeout_s_));
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace hearth::collective
