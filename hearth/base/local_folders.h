// The folders that Spark or YARN gives an executor for large temporary files, one on each disk.
#pragma once

#include <string>
#include <vector>

namespace hearth {

// From the environment, in its order: SPARK_EXECUTOR_DIRS, else LOCAL_DIRS, else SPARK_LOCAL_DIRS.
// None where this process does not belong to an executor. Whether they exist is not checked.
std::vector<std::string> LocalFolders();

}  // namespace hearth
