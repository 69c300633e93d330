// The name under which a file is written before it gets its own.
#pragma once

#include <string>

namespace hearth::storage {

// Beside the file, hidden (from Spark and Hadoop too), unique among all writers on all hosts.
std::string TemporaryFor(const std::string& uri);

}  // namespace hearth::storage
