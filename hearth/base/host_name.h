// Name of this host, recorded in files and charts as their origin.
#pragma once

#include <string>

namespace hearth {

// As reported by the kernel; "unknown" if that fails. Any thread.
std::string HostName();

}  // namespace hearth
