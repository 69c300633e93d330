// Background operations: Submit returns at once, and the queue's thread executes the requests in
// order of submission, which is the same on all ranks.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

#include "hearth/base/deadline.h"
#include "hearth/base/thread.h"
#include "hearth/collective/operation/request.h"

namespace hearth::collective {

class Group;

// A submitted operation. Copies refer to the same operation; any thread may use them, also after
// the queue is destroyed.
class Handle {
 public:
  bool done() const;
  // Returns once the operation has succeeded. Throws its error, at each call; kDeadlineExceeded,
  // with the operation's name, if the deadline passes first: the operation then continues.
  void Wait(Deadline deadline) const;

 private:
  friend class Queue;
  struct State;
  explicit Handle(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

// Executes a group's operations in a background thread, in the order of submission.
class Queue {
 public:
  // The group outlives the queue and is used by the queue alone, except for Abort. An operation has
  // `timeout_s` from its start.
  explicit Queue(Group& group, double timeout_s = 30);
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue();  // closes, and waits as Close() does

  // Any thread; several threads must order their calls themselves. The queue owns the memory until
  // the handle is done. After one operation has failed, all later ones fail with the same error.
  // Throws kInvalidArgument for an invalid request (Group::Check): if it failed only in the queue,
  // later operations would be matched with the wrong ones of other ranks.
  // `on_done` is called once when the operation has ended, with its error or null, on the queue's
  // thread, which it must not block; not called if Submit throws.
  using Callback = std::function<void(const std::exception_ptr&)>;
  Handle Submit(Request request, Callback on_done = nullptr);

  // Executes the operation on the caller's thread, for at most `timeout_s`, which saves two context
  // switches, and throws its error (Group::Run). Returns false, without effect, if other operations
  // are pending. Any thread; throws as Submit does.
  bool TryRun(Request request);

  // Waits for the running operation, for at most its `timeout_s`; pending and later ones fail with
  // kAborted. Call Group::Abort first to end it at once. Any thread; idempotent; never throws.
  void Close();

 private:
  void Loop();
  // Checks the request and locks the queue. Throws kAborted after Close().
  std::unique_lock<std::mutex> Open(Request* request);
  std::exception_ptr Run(const Request& request) noexcept;

  Group& group_;
  const double timeout_s_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Handle::State>> waiting_;
  bool running_ = false;  // an operation runs, on any thread
  bool stopping_ = false;
  std::mutex closing_;
  Thread thread_;  // last: it uses everything above
};

}  // namespace hearth::collective
