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

// Runs operations on the memory of the ranks' CUDA devices with NCCL. Belongs to one rank and is
// used by one thread. The caller of Run ensures that all ranks have arrived with the same request,
// because NCCL neither compares calls nor names ranks in errors. Unusable after an error.
class NcclGroup {
 public:
  // The rank's position in its group, and how it detects that a peer is gone.
  struct Membership {
    int rank = 0;
    int world = 1;
    std::shared_ptr<AbortSignal> abort;
    std::function<std::string()> departed_rank;  // name of a rank that has left the group, or empty
  };

  // Collective, with the same id on all ranks. Throws kUnavailable (NCCL failed, or a rank left),
  // kDeadlineExceeded, kAborted.
  NcclGroup(int device, const nccl::UniqueId& id, Membership membership, Deadline deadline);
  ~NcclGroup() { Close(); }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  // Returns once the operation is done on this rank. Throws as the constructor does; the operation
  // has then ended and no longer accesses the memory. `parts` is used by all-gather only.
  void Run(const Request& request, const std::vector<Range>& parts, Deadline deadline);

  // Reports that the ranks are no longer in step, so that Close does not wait for the peers.
  void Fail() { failed_ = true; }
  // Releases NCCL's resources. Idempotent.
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
