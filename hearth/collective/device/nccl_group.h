#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/collective/device/device_stream.h"
#include "hearth/collective/device/nccl_api.h"
#include "hearth/collective/operation/abort_signal.h"
#include "hearth/collective/operation/request.h"

namespace hearth::collective {

// Operations on the memory of the ranks' CUDA devices, by NCCL. Belongs to one rank; one thread
// uses it. The caller of Run ensures that all ranks have arrived with the same request: NCCL
// compares no calls and names no ranks. Unusable after an error.
class NcclGroup {
 public:
  // The rank's position in its group, and how it detects that a peer is gone.
  struct Membership {
    int rank = 0;
    int world = 1;
    std::shared_ptr<AbortSignal> abort;
    std::function<std::string()> departed_rank;  // name of a rank that has left the group, or empty
  };

  // Collective, with one id on all ranks. Throws kUnavailable (NCCL failed, or a rank left),
  // kDeadlineExceeded, kAborted.
  NcclGroup(int device, const nccl::UniqueId& id, Membership membership, Deadline deadline);
  ~NcclGroup() { Close(); }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  // Returns once the operation is done on this rank. Throws as the constructor does; the operation
  // has then ended and no longer accesses the memory. `parts` is for all-gather.
  void Run(const Request& request, const std::vector<Range>& parts, Deadline deadline);

  // The ranks are no longer in step: Close does not wait for the peers.
  void Fail() { failed_ = true; }
  // Idempotent.
  void Close();

 private:
  void Begin(const Request& request, const std::vector<Range>& parts);
  void ReduceScatter(const Request& request);
  void AllGather(const Request& request, const std::vector<Range>& parts);
  void AllToAll(const Request& request);
  template <typename Body>
  void Grouped(const Body& calls);
  void AwaitSubmission(Deadline deadline);
  void Await(Deadline deadline);
  bool CheckPeers(bool left_before);
  void Check(nccl::Result result) const;
  void End();

  const nccl::Api& api_;
  const Membership group_;
  DeviceStream stream_;
  nccl::Communicator* communicator_ = nullptr;
  bool failed_ = false;
};

}  // namespace hearth::collective
