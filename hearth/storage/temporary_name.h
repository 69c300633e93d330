// The name under which a file is written before it gets its own.
#pragma once

#include <string>

namespace hearth::storage {

// Beside the file, hidden (to Spark and Hadoop as well), unlike any other writer's on any host.
std::string TemporaryFor(const std::string& uri);

}  // namespace hearth::storage
