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

// A submitted operation. Copies refer to the same operation; any thread may use them, even after
// the queue is destroyed.
class Handle {
 public:
  bool done() const;
  // Returns once the operation has succeeded. If it has failed, every call throws its error. Throws
  // kDeadlineExceeded, with the operation's name, if the deadline passes first; the operation then
  // continues.
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
  // The group outlives the queue and is used by the queue alone, except for Abort. `timeout_s`
  // limits each operation from its start.
  explicit Queue(Group& group, double timeout_s = 30);
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue();  // closes, and waits as Close() does

  // Any thread may call Submit, but several threads must order their calls themselves. The caller
  // must not access the memory until the handle is done. After one operation has failed, all later
  // ones fail with the same error. Throws kInvalidArgument for an invalid request (Group::Check).
  // If such a request failed only in the queue, later operations would be matched with the wrong
  // operations of other ranks. `on_done` is called once with the error or null when the operation
  // has ended, unless Submit throws. It runs on the queue's thread and must not block.
  using Callback = std::function<void(const std::exception_ptr&)>;
  Handle Submit(Request request, Callback on_done = nullptr);

  // Executes the operation on the caller's thread, which saves two context switches, with the
  // timeout `timeout_s`. Throws its error (Group::Run). If other operations are pending, does
  // nothing and returns false. Any thread may call it; throws as Submit does.
  bool TryRun(Request request);

  // Waits for the running operation, at most `timeout_s`; pending and later operations fail with
  // kAborted. To end the running operation at once, call Group::Abort first. Any thread may call
  // it; idempotent; never throws.
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
  bool running_ = false;  // true while an operation runs, on any thread
  bool stopping_ = false;
  std::mutex closing_;
  Thread thread_;  // last, so that it is joined before the members that it uses are destroyed
};

}  // namespace hearth::collective
