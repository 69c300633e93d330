// Finds an RDMA device of this host.
#pragma once

#include <string>

namespace hearth::collective {

// An RDMA device of this host, or the reason why there is none. Exactly one of the two fields is
// set.
struct RdmaDevice {
  std::string name;     // "mlx5_0:1": the first device with an active port, and the port
  std::string missing;  // why there is no device
};

// Looks for an active device in Linux's list, and loads UCX only if there is one.
RdmaDevice FindRdmaDevice(const std::string& folder = "/sys/class/infiniband");

}  // namespace hearth::collective
