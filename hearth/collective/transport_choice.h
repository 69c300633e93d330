// Chooses the transport between ranks from HEARTH_TRANSPORT, the options and the hosts' devices.
#pragma once

#include <string>
#include <vector>

#include "hearth/collective/group.h"
#include "hearth/collective/rank_info.h"

namespace hearth::collective {

// Applies the environment to the options. HEARTH_TRANSPORT is "auto" or empty (keep the options),
// "shm" (all ranks must share memory), "tcp" or "rdma" (also within a host). HEARTH_TLS is "on" or
// "off". HEARTH_MESH_PORT is the range of ports to try, such as 7400-7499, if the options specify
// none. Throws kInvalidArgument for other values.
GroupOptions WithChosenTransport(GroupOptions options);

// This rank's RDMA device, for its RankInfo.
RdmaDevice OwnRdmaDevice(const GroupOptions& options);

// Transport between ranks that share no memory. All ranks compute the same one.
struct InterHostTransport {
  bool rdma = false;
  bool encrypted = false;  // only with TCP
  std::string reason;      // for the log: the device with UCX_TLS, or why RDMA is not used

  std::string Name() const { return rdma ? "rdma" : encrypted ? "tcp with TLS" : "tcp"; }
};

// Throws kUnavailable if RDMA is required and a rank has no device, and kInvalidArgument if only
// some ranks encrypt.
InterHostTransport ChooseInterHostTransport(const GroupOptions& options,
                                            const std::vector<RankInfo>& ranks);

// Returns the transports that UCX may use, in the format of UCX_TLS.
std::string UcxTransports(const GroupOptions& options);

}  // namespace hearth::collective
