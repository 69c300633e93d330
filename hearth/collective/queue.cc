#include "hearth/collective/queue.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/thread.h"
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
    if (on_done) on_done(failure);
  }

  std::string Describe() const {
    Call call;
    call.operation = request.operation;
    call.type = request.type;
    call.op = request.op;
    call.wire = request.wire;
    call.root = request.peer;
    call.memory = request.memory;
    call.bytes = request.count * SizeOf(request.type);
    call.SetName(request.name);
    return call.Describe();
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
  const auto over = [&] { return state_->done; };
  // wait_until(max) overflows inside some standard libraries.
  if (deadline.at() == Deadline::Clock::time_point::max()) {
    state_->changed.wait(lock, over);
  } else {
    Require(state_->changed.wait_until(lock, deadline.at(), over), ErrorCode::kDeadlineExceeded,
            "{} was not over when the time was; it goes on in the background", state_->Describe());
  }
  if (state_->error != nullptr) std::rethrow_exception(state_->error);
}

class Queue::Impl {
 public:
  Impl(Group& group, double timeout_s) : group_(group), timeout_s_(timeout_s) {
    thread_ = Thread("collective", [this] { Loop(); });
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.Join();
    const auto ended = std::make_exception_ptr(
        Error(ErrorCode::kAborted, "the queue of operations ended before this one began"));
    for (const auto& state : waiting_) state->Finish(ended);
  }

  void Submit(std::shared_ptr<Handle::State> state) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(state));
    }
    changed_.notify_all();
  }

  const Group& group() const { return group_; }

 private:
  void Loop() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
      if (stopping_) return;
      const std::shared_ptr<Handle::State> state = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      state->Finish(Run(state->request));
      lock.lock();
    }
  }

  std::exception_ptr Run(const Request& request) noexcept {
    try {
      group_.Run(request, Deadline::After(timeout_s_));
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  }

  Group& group_;
  const double timeout_s_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Handle::State>> waiting_;
  bool stopping_ = false;
  Thread thread_;  // last: it uses everything above
};

Queue::Queue(Group& group, double timeout_s) : impl_(std::make_unique<Impl>(group, timeout_s)) {}
Queue::~Queue() = default;

Handle Queue::Submit(Request request) { return Submit(std::move(request), nullptr); }

Handle Queue::Submit(Request request, Callback on_done) {
  impl_->group().Check(request);
  request.submitted = std::chrono::steady_clock::now();
  auto state = std::make_shared<Handle::State>(std::move(request), std::move(on_done));
  impl_->Submit(state);
  return Handle(state);
}

}  // namespace hearth::collective
