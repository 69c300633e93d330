// Local folders that Spark or YARN gives an executor for large temporary files, one per disk.
#pragma once

#include <string>
#include <vector>

namespace hearth {

// The folders in the first of these environment variables that is set: SPARK_EXECUTOR_DIRS,
// LOCAL_DIRS, SPARK_LOCAL_DIRS. Empty outside of an executor. Does not check that the folders
// exist.
std::vector<std::string> LocalFolders();

}  // namespace hearth
