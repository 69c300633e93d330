// Selects the address of this host that the other ranks connect to.
#pragma once

#include <string>
#include <vector>

namespace hearth::collective {

// An address of this host, and the network interface that has it.
struct HostAddress {
  std::string interface;
  std::string address;
};

// Returns `usual`, unless the environment variable HEARTH_INTERFACE names an interface ("eth1") or
// an address range ("10.20.0.0/16", "fd00:20::/32"); then returns this host's address there. Throws
// kInvalidArgument, listing the host's addresses, if none matches.
std::string ListenAddress(const std::string& usual);

// Chooses one of `addresses` by `choice`, the value of HEARTH_INTERFACE. If several match, prefers
// the IP version of `usual`, then the first one.
std::string ChooseAddress(const std::string& choice, const std::string& usual,
                          const std::vector<HostAddress>& addresses);

}  // namespace hearth::collective
