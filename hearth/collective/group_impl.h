#pragma once

#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/timeline.h"
#include "hearth/collective/connector.h"
#include "hearth/collective/device/nccl_group.h"
#include "hearth/collective/group.h"
#include "hearth/collective/operation/abort_signal.h"
#include "hearth/collective/operation/backend.h"
#include "hearth/collective/shared_memory/arena.h"
#include "hearth/collective/shared_memory/local_ranks.h"
#include "hearth/collective/stall_watch.h"
#include "hearth/rendezvous/failure_watch.h"

namespace hearth::collective {

// State of a Group. Connector builds it; Group forwards to it.
class Group::Impl {
 public:
  int rank = 0;
  int world = 1;
  Identity identity;  // for the groups that split off
  std::string name;   // unique; the same on all ranks of the group
  std::string description;
  std::shared_ptr<AbortSignal> abort;
  // Declared in order of dependency, so that they are destroyed in reverse.
  std::unique_ptr<LocalRanks> local;
  std::unique_ptr<Arena> arena;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<NcclGroup> devices;  // null if GPU memory is not used
  std::unique_ptr<StallWatch> stalls;  // null if the group has one rank
  rendezvous::FailureWatch::Subscription failure_subscription;

  ~Impl() {
    if (devices != nullptr) devices->Close();
    if (backend != nullptr) backend->Leave();
  }

  bool broken() const { return broken_.has_value(); }
  void Check(const Request& request) const;
  // Implements Group::Run.
  void Execute(const Request& request, Deadline deadline);
  // Creates `devices`. Returns the reason if that fails, else an empty string.
  std::string ConnectDevices(int device, const nccl::UniqueId& id, Deadline deadline);

  // Runs one operation.
  template <typename Body>
  void Run(Call call, const void* buffer, Deadline deadline, const Body& body) {
    if (broken_.has_value()) throw Error(*broken_);
    call.location = LocationOf(buffer, call.bytes);
    local->Begin(call);
    backend->Begin(call);
    if (stalls != nullptr) stalls->Begin(call, deadline);
    if (timeline::On()) begun_ = timeline::Clock::now();
    Guard(call, body);
    if (stalls != nullptr) stalls->End(true);
    if (timeline::On()) RecordOperation(call, nullptr);
  }

 private:
  // Any failure of `body` breaks the group, and its error names the operation. This includes
  // running out of memory, because the peers are already inside the operation.
  template <typename Body>
  void Guard(const Call& call, const Body& body) {
    try {
      return body();
    } catch (const Error& error) {
      Break(call, error);
    } catch (const std::bad_alloc& error) {
      Break(call, Error(ErrorCode::kResourceExhausted, error.what()));
    } catch (const std::exception& error) {
      Break(call, Error(ErrorCode::kInternal, error.what()));
    }
    throw Error(*broken_);
  }

  void ExecuteOnDevice(const Call& call, const Request& request, Deadline deadline);
  void CheckOnDevice(const Request& request) const;
  // Copies the input to the memory that the backend works on in place, and returns that memory.
  Buffer Prepare(const Request& request);
  void Dispatch(const Request& request, Buffer work, Deadline deadline);
  void Reduce(const Request& request, Buffer work, Deadline deadline);
  const std::vector<Range>& PartsOf(const Request& request);
  uint64_t LocationOf(const void* buffer, uint64_t bytes) const;
  void Break(const Call& call, const Error& error);
  // Adds the finished operation to the timeline.
  void RecordOperation(const Call& call, const Error* error);

  std::optional<Error> broken_;
  uint64_t steps_ = 0;  // operations other than send and receive, for the timeline
  timeline::Clock::time_point begun_, submitted_;
  std::vector<Range> parts_;  // a member, like scratch_, so that operations do not allocate
  std::vector<std::byte> scratch_;
};

}  // namespace hearth::collective
