// Name of this host, recorded in files and charts as their origin.
#pragma once

#include <string>

namespace hearth {

// The host name that the kernel reports, or "unknown" if the call fails. Any thread may call it.
std::string HostName();

}  // namespace hearth
