// Local folders that Spark or YARN gives an executor for large temporary files, one per disk.
#pragma once

#include <string>
#include <vector>

namespace hearth {

// From the environment, in order: SPARK_EXECUTOR_DIRS, else LOCAL_DIRS, else SPARK_LOCAL_DIRS.
// Empty outside of an executor. Does not check that they exist.
std::vector<std::string> LocalFolders();

}  // namespace hearth
