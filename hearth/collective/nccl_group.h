// The operations on the memory of the ranks' CUDA devices, by NCCL. Belongs to one rank; one thread
// uses it. Whoever calls Run knows that all ranks have come with the same request: NCCL itself
// compares nothing, and names nobody. After an error it is unusable.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/collective/abort_signal.h"
#include "hearth/collective/device_stream.h"
#include "hearth/collective/nccl_api.h"
#include "hearth/collective/request.h"

namespace hearth::collective {

class NcclGroup {
 public:
  // What it is among, and how it learns that waiting is in vain.
  struct Surroundings {
    int rank = 0;
    int world = 1;
    std::shared_ptr<AbortSignal> abort;
    std::function<std::string()> who_left;  // names a rank that has left the group, or none
  };

  // All ranks construct it together with one id. Throws kUnavailable, kDeadlineExceeded, kAborted.
  NcclGroup(int device, const nccl::UniqueId& id, Surroundings surroundings, Deadline deadline);
  ~NcclGroup() { Close(); }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  // Returns once it is done on this rank. Throws as the constructor; what runs has been ended then,
  // and touches no memory any more. `parts`: of an all-gather.
  void Run(const Request& request, const std::vector<Range>& parts, Deadline deadline);

  // The ranks are no longer in step: its end will wait for nobody.
  void Fail() { failed_ = true; }
  // Idempotent.
  void Close();

 private:
  void Begin(const Request& request, const std::vector<Range>& parts);
  void ReduceScatter(const Request& request);
  void AllGather(const Request& request, const std::vector<Range>& parts);
  void AllToAll(const Request& request);
  template <typename Body>
  void InOne(const Body& calls);
  void Settle(Deadline deadline);
  void Await(Deadline deadline);
  bool LookAround(bool left_before);
  void Check(nccl::Result result) const;
  void End();

  const nccl::Api& api_;
  const Surroundings around_;
  DeviceStream stream_;
  nccl::Communicator* communicator_ = nullptr;
  bool failed_ = false;
};

}  // namespace hearth::collective
