// Names of temporary files.
#pragma once

#include <string>

namespace hearth::storage {

// Returns a name in the same folder, hidden (also from Spark and Hadoop), unique among writers on
// all hosts.
std::string TemporaryFor(const std::string& uri);

}  // namespace hearth::storage
