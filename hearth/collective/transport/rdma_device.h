// Finds an RDMA device of this host.
#pragma once

#include <string>

namespace hearth::collective {

// One of the two fields is empty.
struct RdmaDevice {
  std::string name;     // "mlx5_0:1": the first device with an active port, and the port
  std::string missing;  // why there is none
};

// Looks for a device in Linux's list, and, only if there is one, for UCX.
RdmaDevice FindRdmaDevice(const std::string& folder = "/sys/class/infiniband");

}  // namespace hearth::collective
