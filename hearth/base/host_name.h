// This host's name, for files and pictures that say where they come from.
#pragma once

#include <string>

namespace hearth {

// As the kernel has it, "unknown" where it does not say. Any thread.
std::string HostName();

}  // namespace hearth
