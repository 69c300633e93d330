// Name of this host, for files and charts that state their origin.
#pragma once

#include <string>

namespace hearth {

// As reported by the kernel; "unknown" if that fails. Any thread.
std::string HostName();

}  // namespace hearth
