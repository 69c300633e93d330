// hearth.native._core: background operations of a group.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "collective_request.h"
#include "gil.h"
#include "hearth/base/error.h"
#include "hearth/collective/group.h"
#include "hearth/collective/queue.h"
#include "hearth/collective/queue_c_api.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using collective::Group;

// An operation and the references that keep its arrays alive.
struct Submitted {
  collective::Handle handle;
  ArrayRequest request;
};

// A queue of operations on arrays. Guarded by the GIL, which is released during waits for the
// running operation.
class ArrayQueue {
 public:
  ArrayQueue(std::shared_ptr<Group> group, double timeout_s)
      : group_(std::move(group)), queue_(std::make_shared<collective::Queue>(*group_, timeout_s)) {}
  ArrayQueue(const ArrayQueue&) = delete;
  ArrayQueue& operator=(const ArrayQueue&) = delete;
  ~ArrayQueue() { Close(); }

  // Returns the address of the hearth_collective struct (collective/c_api.h), which is valid until
  // Close.
  uintptr_t CApi() {
    RequireOpen();
    if (c_api_ == nullptr) {
      c_api_ = std::make_unique<collective::QueueCApi>(*queue_, group_->rank(), group_->world());
    }
    return reinterpret_cast<uintptr_t>(c_api_->get());
  }

  std::shared_ptr<Submitted> Submit(const ArrayRequest& request) {
    RequireOpen();
    // Drops references to arrays of finished operations. This is done here because the queue's
    // thread does not hold the GIL.
    std::erase_if(submitted_, [](const auto& each) { return each->handle.done(); });
    auto handle = queue_->Submit(request.For(*group_));
    submitted_.push_back(std::make_shared<Submitted>(Submitted{std::move(handle), request}));
    return submitted_.back();
  }

  // Returns true if the request was executed.
  bool TryRun(const ArrayRequest& request) {
    RequireOpen();
    // The copy of queue_ keeps the queue alive, because another thread may close it meanwhile;
    // Close then waits for the operation.
    return WithoutGil([queue = queue_, what = request.For(*group_)]() mutable {
      return queue->TryRun(std::move(what));
    });
  }

  void Close() {
    if (queue_ == nullptr) return;
    // Takes the queue before it releases the GIL (instead of using a call guard), because another
    // thread may call Close too.
    const auto ending = std::move(queue_);
    WithoutGil([&] { ending->Close(); });
    // The arrays are released only now, because the running operation may access them until Close()
    // returns.
    submitted_.clear();
    c_api_.reset();
  }

 private:
  void RequireOpen() const {
    Require(queue_ != nullptr, ErrorCode::kAborted, "the queue of operations is closed");
  }

  const std::shared_ptr<Group> group_;
  std::shared_ptr<collective::Queue> queue_;
  std::unique_ptr<collective::QueueCApi> c_api_;
  // Keep alive the arrays that operations may be using.
  std::vector<std::shared_ptr<Submitted>> submitted_;
};

void Wait(const Submitted& submitted, double timeout_s) {
  const collective::Handle handle = submitted.handle;
  WithoutGil([&] { handle.Wait(Deadline::After(timeout_s)); });
}

}  // namespace

void RegisterCollectiveQueue(nb::module_& m) {
  nb::class_<Submitted>(m, "Handle", "An operation submitted to a Queue. Thread-safe.")
      .def("done", [](const Submitted& submitted) { return submitted.handle.done(); })
      .def("wait", &Wait, "timeout_s"_a,
           "Returns once the operation has succeeded; raises its error, at each call. Raises "
           "TimeoutError with the operation's name at the deadline; the operation continues.");
  nb::class_<ArrayQueue>(
      m, "Queue",
      "Executes operations of one group in a dedicated thread, in the order of submission, "
      "which must be the same on all ranks. Meanwhile nothing else may use the group except "
      "abort().")
      .def(nb::init<std::shared_ptr<Group>, double>(), "group"_a, "timeout_s"_a = 30.0,
           nb::keep_alive<1, 2>(), "Each operation may take `timeout_s` from its start.")
      .def("submit", &ArrayQueue::Submit, "request"_a,
           "Returns a Handle at once. Later changes of the request have no effect; its arrays "
           "must not change until the handle is done. Raises ValueError for arrays whose "
           "sizes do not match, and for an inconsistent request.")
      .def("try_run", &ArrayQueue::TryRun, "request"_a,
           "Executes the request in the caller's thread, raises its error, and returns "
           "True; False without doing anything if others are queued.")
      .def("c_api", &ArrayQueue::CApi,
           "The address of its hearth_collective (hearth/collective/c_api.h), for a plug-in, which "
           "must release it before close().")
      .def("close", &ArrayQueue::Close,
           "Waits for the running operation; queued ones fail. Group.abort() ends it at "
           "once.");
}

}  // namespace hearth::bindings
