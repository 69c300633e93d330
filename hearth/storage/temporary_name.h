// Names of temporary files.
#pragma once

#include <string>

namespace hearth::storage {

// Returns a name for a temporary file in the folder of `uri`. It is hidden, also from Spark and
// Hadoop, and unique among writers on all hosts.
std::string TemporaryFor(const std::string& uri);

}  // namespace hearth::storage
