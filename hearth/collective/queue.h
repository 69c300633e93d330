// Operations in the background: Submit returns at once, a thread of the queue carries the requests
// out one after the other, in the order of their submission, which is the same on all ranks.
#pragma once

#include <exception>
#include <functional>
#include <memory>

#include "hearth/base/deadline.h"
#include "hearth/collective/request.h"

namespace hearth::collective {

class Group;

// An operation that was submitted. Copies mean the same operation; any thread may use them, also
// after the queue has ended.
class Handle {
 public:
  bool done() const;
  // Returns once the operation has succeeded. Throws what it threw, each time it is called;
  // kDeadlineExceeded with the operation's name when the time is over first: it goes on then.
  void Wait(Deadline deadline) const;

 private:
  friend class Queue;
  struct State;
  explicit Handle(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

class Queue {
 public:
  // The group outlives the queue, which is the only one to use it, except for Abort. An operation
  // may take `timeout_s` from its start.
  explicit Queue(Group& group, double timeout_s = 30);
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue();  // closes

  // Any thread; with several, the caller sees to the order. The memory is the queue's until the
  // handle is done. After one operation failed all later ones fail with the same error. Throws
  // kInvalidArgument for a request that makes no sense by itself (Group::Check): had it only failed
  // later, those behind it would meet other operations of the other ranks.
  Handle Submit(Request request);
  // `on_done` is called once when the operation is over, with what it threw or null, from the
  // queue's thread, which it must not block; not at all where Submit throws.
  using Callback = std::function<void(const std::exception_ptr&)>;
  Handle Submit(Request request, Callback on_done);

  // Carries the operation out in the caller's thread, which spares two changes of thread, and
  // throws what it threw. False where others are before it: nothing was done then. Any thread;
  // throws as Submit.
  bool TryRun(Request request);

  // Waits for the operation that runs; those behind it fail with kAborted, and so does all that
  // comes later. Call Group::Abort first to end it at once. Any thread; idempotent.
  void Close();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hearth::collective
