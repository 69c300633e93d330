// Whether this host can talk by RDMA.
#pragma once

#include <string>

namespace hearth::collective {

// One of the two is empty.
struct RdmaDevice {
  std::string name;     // "mlx5_0:1": the first device with an active port, and the port
  std::string missing;  // why there is none
};

// Looks for a device as Linux lists them, and for UCX, which is loaded only where there is a
// device.
RdmaDevice FindRdmaDevice(const std::string& folder = "/sys/class/infiniband");

}  // namespace hearth::collective
