// Which of this host's addresses the other ranks connect to.
#pragma once

#include <string>
#include <vector>

namespace hearth::collective {

struct HostAddress {
  std::string interface;
  std::string address;
};

// `usual`, unless the environment variable HEARTH_INTERFACE names an interface ("eth1") or a range
// of addresses ("10.20.0.0/16", "fd00:20::/32"): then this host's address there. Throws
// kInvalidArgument where the host has none, with those that it has.
std::string ListenAddress(const std::string& usual);

// The same for a choice and addresses that are given. Where several fit: one of the version (IPv4,
// IPv6) of `usual`, and the first of these.
std::string ChooseAddress(const std::string& choice, const std::string& usual,
                          const std::vector<HostAddress>& addresses);

}  // namespace hearth::collective
