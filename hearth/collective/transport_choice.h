// What ranks talk over: what the environment variable HEARTH_TRANSPORT and the options ask for, and
// what comes of it on the hosts that there are.
#pragma once

#include <string>
#include <vector>

#include "hearth/collective/group.h"
#include "hearth/collective/rank_info.h"

namespace hearth::collective {

// The options with the variables' choice. HEARTH_TRANSPORT: "auto" or nothing (as the options say),
// "shm" (all ranks must share memory), "tcp" or "rdma" (also within a host). HEARTH_TLS: "on",
// "off". HEARTH_MESH_PORT: the ports to try, as 7400-7499, where the options name none. Throws
// kInvalidArgument for another value.
GroupOptions WithChosenTransport(GroupOptions options);

// Whether this rank can talk by RDMA, for its RankInfo.
RdmaDevice OwnRdmaDevice(const GroupOptions& options);

// What ranks that share no memory talk over. All ranks come to the same answer.
struct Between {
  bool rdma = false;
  bool encrypted = false;  // over tcp alone
  std::string reason;      // for the log: the device and UCX_TLS, or why there is no RDMA

  std::string Name() const { return rdma ? "rdma" : encrypted ? "tcp with TLS" : "tcp"; }
};

// Throws kUnavailable where RDMA is asked for and a rank has none, and kInvalidArgument where some
// ranks encrypt and others do not.
Between ChooseBetween(const GroupOptions& options, const std::vector<RankInfo>& ranks);

// What UCX may use, as in UCX_TLS.
std::string UcxTransports(const GroupOptions& options);

}  // namespace hearth::collective
